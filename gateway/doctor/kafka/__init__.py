"""The doctor's checks of Kafka brokers.

- without I/O: `hello` (the requests to a broker, and its responses), `verdicts` (makes findings
  from responses)
- over the network: `checks` (makes all checks)
"""
