"""The protocol of Apache InLong TubeMQ: the RPC of clients with the master and with brokers.

- A connection begins in `opening`, which finds the active master by means of `asking`. `session`
  then identifies the client of each request (`callers`), authorizes the request (`judging`), and
  makes synthetic replies (`answering`).
- `to_broker` and `to_client` are the scanners, on the base of `scanning`. They pass requests that
  send or ask for messages and have an account, receipts, and messages for consumers. At all other
  frames they halt, block by block, and `assembly` joins the blocks.
- `fields` is the table of what happens to each field that names something; `judging` and
  `rewriting` work by it. `rewriting` replaces addresses (`addresses`) and ids of clients
  (`clients`), and filters lists, in slices (`slices`) if they are long.
- `waiting` has the messages that wait because they are above a limit, `in_flight` the requests
  that have no reply yet, and `progress` the offsets of groups.
- `frames` reads and writes blocks, `envelopes` the content of frames.
"""
