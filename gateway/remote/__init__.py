"""What goes over HTTP to others, who know what the gateway does not.

- `fetching`: requests, bounded in time and bytes, and the keys of those who issue tokens
- `oauth`: the gateway's own token, by client credentials (RFC 6749 section 4.4)
- `opa`: decisions of Open Policy Agent about rights
"""
