"""The protocol of Apache InLong TubeMQ: the RPC of clients with the master and with brokers."""
