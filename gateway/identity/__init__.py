"""Authentication: clients' credentials, and the gateway's own credential towards brokers.

`keys` and `token` load joserfc and cryptography; import them only where tokens are verified.
"""
