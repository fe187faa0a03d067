"""SASL, by which Kafka's clients and brokers authenticate.

- `handshake`: the requests and responses that carry SASL
- `exchange`: the authentication of a client at the gateway
- `mechanisms`: the supported mechanisms, and how each verifies a client
- `plain`, `scram`, `bearer`: the tokens of each mechanism, of clients and of servers
- `names`: the encoding of user names in tokens
- `claims`: the name that a client claims towards its broker
- `client`: the authentication of the gateway at a broker

Sources: KIP-43, KIP-84, KIP-152, KIP-255, KIP-368.
"""
