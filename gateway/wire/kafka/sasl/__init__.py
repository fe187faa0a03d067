"""SASL, by which Kafka's clients and brokers tell each other who they are.

- `handshake`: the requests and answers that carry it
- `exchange`: what happens between a client and the gateway
- `mechanisms`: which there are, and how a client is verified by one
- `plain`, `scram`, `bearer`: the tokens of each mechanism, of both sides; `names` in them
- `client`: how the gateway shows its own credential to a broker

Sources: KIP-43, KIP-84, KIP-152, KIP-255, KIP-368.
"""
