"""The doctor's checks of Kafka brokers.

- *without I/O*: `hello` (the requests to a broker, and its responses), `verdicts` (responses
  become findings)
- over the network: `checks` (all of them)
"""
