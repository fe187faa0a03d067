"""The protocol of Apache InLong TubeMQ: the RPC of clients with the master and with brokers.

- A connection begins in `opening`, which finds the active master (`asking`); `session` learns who
  asks (`callers`) and decides by `methods`, `judging` and `answering`.
- `requests` and `replies` pass frames like one that was decided (`alike`), read messages while
  they pass (`bringing`), and halt at the blocks of others, which `assembly` puts together.
- `rewriting` has addresses rewritten by `addresses`; `waiting` has requests above a limit,
  `in_flight` those that await their response, `progress` the offsets.
- `frames` has blocks, `envelopes` what is in them.
"""
