"""The protocol of Apache Kafka: its messages, and what the gateway reads and changes in them.

- A connection begins in `opening`, which uses `greeting`, `authenticating` and `sasl`. `session`
  then returns what to do with each stop frame, a frame at which a scanner halts.
- `to_broker` and `to_client` are the scanners. They read lengths and batches by `pieces`.
- `rights`, `lists`, `fetching`, `producing` and `replicas` authorize requests that stop; `records`
  counts their batches. `book` opens the accounts of topics on their first use. `asking` asks for
  names and rights that are not known. `substitutes` has the names that stand for denied topics.
  `shown` says why a client may see each name in a response. `sessions` has the fetch and share
  sessions that the connection may use.
- `answering` changes responses by means of `addresses`, `cleaning`, `restoring`, `throttle` and
  `versions`. `synthetic` makes synthetic responses, and `in_flight` puts them in order.
- `schema`, `walk`, `codec` and `frames` read any message by the tables of `_messages`.
"""
