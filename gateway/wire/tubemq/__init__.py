"""The protocol of Apache InLong TubeMQ: the RPC of clients with the master and with brokers.

- A connection begins in `opening`, which finds the active master (`asking`); `session` identifies
  the client of each request (`callers`), and decides frames by `methods`, `judging` and
  `answering`.
- `requests` and `replies` are the scanners. They pass frames like one that was decided (`alike`),
  read messages while they pass (`bringing`), and halt at the blocks of all other frames, which
  `assembly` joins.
- `rewriting` has addresses rewritten by `addresses`; `waiting` has the requests above a limit,
  `in_flight` those without a reply yet, `progress` the offsets.
- `frames` reads and writes blocks, `envelopes` their content.
"""
