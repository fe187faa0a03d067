"""`gateway doctor`: checks everything that a configuration names, and advises.

The doctor changes nothing. It may run beside a gateway: to the brokers it is one more client for a
moment.

- without I/O: `finding` (the results of checks), `report` (the table of findings), `targets`
  (entries that the allow-list must have)
- checks of this machine: `files`, `machine`, `ports`; checks over the network: `reach`, `brokers`,
  `store`
- `asking`, `strangers`: which protocol a peer at an address speaks
- one folder for each protocol: the protocol's checks of its brokers, which the protocol's plugin
  names; `checks` has the interface of these
- `command`: all checks at once, and the exit status
"""
