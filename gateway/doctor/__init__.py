"""`gateway doctor`: checks everything that a configuration names, and advises.

The doctor changes nothing. Beside a running gateway it is one more client of the brokers for a
moment.

- *without I/O*: `finding` (the values), `report` (their table), `hello` (one CONNECT and its
  answer), `verdicts` (answers become findings), `targets` (required entries of the allow-list)
- *checks*: `files`, `machine`, `ports`, and over the network `reach`, `lookups`, `brokers`
- `command`: all checks at once, and the exit status
"""
