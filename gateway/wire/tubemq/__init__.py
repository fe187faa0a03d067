"""The protocol of Apache InLong TubeMQ: the RPC of clients with the master and with brokers.

- A connection begins in `opening`, which finds the active master by means of `asking`. `session`
  then identifies the client of each request (`callers`), authorizes the request (`judging`, by the
  table of `methods`), and makes synthetic replies (`answering`).
- `to_broker` and `to_client` are the scanners, on the base of `scanning`. They pass requests that
  send or ask for messages and have an account, receipts, and messages for consumers. At all other
  frames they halt, block by block, and `assembly` joins the blocks.
- `rewriting` replaces addresses in messages by means of `addresses`. `waiting` has the messages
  that wait because they are above a limit, `in_flight` the requests that have no reply yet, and
  `progress` the offsets of groups.
- `frames` reads and writes blocks, `envelopes` the content of frames.
"""
