"""The protocol of Apache Kafka: its messages, and what the gateway reads and changes in them.

- A connection begins in `opening` (`greeting`, `authenticating`, `sasl`); `session` decides stop
  frames.
- `requests` and `responses` are the scanners. They count records with `traffic` (in pieces, on
  `stream`), `quick` (whole frames) and `alike` (frames like the last one, also compiled; `watch`
  ends that).
- `rights`, `lists`, `fetching` and `replicas` authorize requests. `book` opens the accounts of
  topics, `substitutes` has the names that stand for denied topics, `shown` the reason why a client
  may see each name in a response, `sessions` the fetch and share sessions that the connection may
  use.
- `answering` changes responses with `addresses`, `cleaning`, `restoring`, `throttle` and
  `versions`; `synthetic` makes synthetic responses, which `in_flight` puts in order.
- `schema`, `walk`, `codec` and `frames` read any message by the tables of `_messages`.
"""
