"""Authentication: clients' credentials, and the gateway's own credential towards brokers.

`keys` and `token` import joserfc and cryptography, so import these two modules only if tokens are
verified.
"""
