"""Broker addresses: rewriting them for clients, which may be dialled, and which are healthy.

- address: where a broker listens, as the configuration or a broker states it
- endpoint: one socket address that a configured address has resolved to
- target: a broker that a client asks for by name
- name: what a client is told in place of a broker's address; it is sealed or readable
- learned host: a host that texts for clients must not contain
"""
