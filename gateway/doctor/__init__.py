"""`gateway doctor`: tries everything that a configuration names, and advises.

It only reads. Beside a running gateway it is one more client of the brokers for a moment.

- *cores*, without I/O: `finding` (the values), `report` (their table), `hello` (one CONNECT and its
  answer), `verdicts` (answers become findings), `targets` (what the allow-list must hold)
- *tries*: `files`, `machine`, `ports`, and over the network `reach`, `lookups`, `brokers`
- `command`: all of them at once, and the exit status
"""
