"""Broker addresses: rewriting them for clients, which may be dialled, and which are healthy.

address: where a broker listens, as configured or as a broker sent it · endpoint: one socket address
that a configured address resolved to · target: a broker that a client asks for by name · name: what
a client gets in place of a broker's address, sealed or readable · learned host: a host that texts
to clients must not contain.
"""
