"""`make soak`: memory and time under many connections, in one gateway process.

Each part prints a table in Markdown and fails where its claim does not hold. Modules:

- `idle`: many idle pairs, held and closed
- `stalled`: pairs whose readers do not read while their writers write
- `churn`: connects, lookups and closes without end
- `pauses`: how long Python's garbage collector keeps the process from its work
- `costs`: the costliest frame of each command (`largest` makes them, for real `listeners`), and
  whether what one connection costs grows faster than what is done on it (`growth`)
- `runner`: the gateway process; `watched` runs inside it and tells what metrics do not
- `brokers`: the broker behind it; `visits`: clients that come and go
- `streams`: bytes through many sockets at once
- `report`: tables
"""
