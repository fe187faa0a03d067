"""The doctor's checks of Pulsar brokers.

- without I/O: `hello` (one CONNECT and its response), `verdicts` (makes findings from responses)
- over the network: `asking` (sends one CONNECT to an address), `lookups`, `checks` (makes all
  checks)
"""
