"""The protocol of Apache Kafka: its messages, and what the gateway reads and changes in them.

- A connection begins in `opening`, which uses `greeting`, `authenticating` and `sasl`. `session`
  then returns what to do with each stop frame, a frame at which a scanner halts.
- `to_broker` and `to_client` are the scanners. They read lengths and batches by `pieces`.
- `fields` says what happens to each field that names something. `authorizing` works by it for
  requests that stop, `producing` for those of Produce; `records` counts their batches. `book` opens
  the accounts of topics on their first use. `asking` asks for names and rights that are not known.
  `substitutes` has the names that stand for denied topics. `sessions` has the fetch and share
  sessions that the connection may use.
- `answering` changes responses by means of `rewriting`, which works by `fields`, `throttle` and
  `versions`; `memberships` reads what members of a group tell each other. `synthetic` makes
  synthetic responses, and `in_flight` puts them in order.
- `schema`, `walk`, `walker`, `codec` and `frames` read any message by the tables of `_messages`, in
  slices (`slicing`) if it is large.
"""
