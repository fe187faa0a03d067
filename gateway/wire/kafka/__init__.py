"""The protocol of Apache Kafka: its messages, and what the gateway reads and changes in them.

- A connection begins in `opening` (`greeting`, `authenticating`, `sasl`); `session` decides frames
  that stop.
- `requests` and `responses` scan. They count records by `traffic` (in pieces, on `stream`), by
  `quick` (whole frames), and by `alike` (frames like the last one, also compiled; `watch` ends
  that).
- `rights`, `lists`, `fetching` and `replicas` authorize requests. `book` opens the accounts of
  topics, `substitutes` has the names of denied ones, `shown` why a client may see what a response
  names, `sessions` the fetch and share sessions that are the connection's own.
- `answering` changes responses by `addresses`, `cleaning`, `restoring`, `throttle` and `versions`;
  `synthetic` makes the gateway's own, which `in_flight` puts in their order.
- `schema`, `walk`, `codec` and `frames` read any message by the tables of `_messages`.
"""
