"""HTTP requests of the gateway to other services: token issuers, and Open Policy Agent.

- `fetching`: requests to issuers of tokens, bounded in time and bytes
- `oauth`: the gateway's own token, by client credentials (RFC 6749 section 4.4)
- `opa`: authorization by Open Policy Agent
"""
