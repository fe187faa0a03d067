"""`make soak`: memory and time under many connections, in one gateway process.

Each part prints a table in Markdown and fails if its claim does not hold. Modules:

- `idle`: many idle pairs, held and closed
- `stalled`: pairs whose readers do not read while their writers write
- `churn`: connects, lookups and closes without end
- `pauses`: how long Python's garbage collector stops the process
- `costs`: the costliest frame of each command (`largest` makes them, for real `listeners`), and
  whether the cost of one connection grows faster than the work on it (`growth`)
- `reload`: how long a reload of rules delays other work
- `scrapes`: what clients feel of scrapes of many topics, of the console and of usage records
- `topics`: whether memory returns when topics come and go
- `requests`: memory and CPU of the chart's modes, from which what pods ask for follows (`pods`:
  their processes; `paced`: messages at a fixed pace)
- `runner`: the gateway process; `watched` runs inside it and reports what metrics do not
- `brokers`: the brokers behind it; `visits`: clients that come and go; `crowd`: producers
  on many topics
- `streams`: bytes through many sockets at once
- `report`: tables
"""
