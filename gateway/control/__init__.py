"""The services that protocol sessions call, made from identity, policy and brokers together."""
