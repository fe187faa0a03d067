"""The doctor's checks of Kafka brokers.

- *without I/O*: `hello` (what a broker is asked, and its answers), `verdicts` (answers become
  findings)
- over the network: `checks` (all of them)
"""
