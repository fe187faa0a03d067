"""`gateway doctor`: checks everything that a configuration names, and advises.

The doctor changes nothing. Beside a running gateway it is one more client of the brokers for a
moment.

- *without I/O*: `finding` (the values), `report` (their table), `targets` (required entries of
  the allow-list)
- *checks*: `files`, `machine`, `ports`, and over the network `reach`, `brokers`, `store`
- `asking`, `strangers`: which protocol a peer at an address speaks
- one folder per protocol: its checks of brokers, which its plugin names; `checks` has their
  interface
- `command`: all checks at once, and the exit status
"""
