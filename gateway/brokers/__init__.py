"""Who is behind: addresses, the names that hide them, what may be dialled, and who is alive.

address: where a broker listens, as configured or as a broker said it · endpoint: one socket
address that a configured address resolved to · target: a broker asked for by name · name: what
stands for a broker towards clients, sealed or readable · learned host: one that must not appear in
texts to clients.
"""
