"""The doctor's checks of Pulsar brokers.

- *without I/O*: `hello` (one CONNECT and its response), `verdicts` (responses become findings)
- over the network: `asking` (one CONNECT at an address), `lookups`, `checks` (all of them)
"""
