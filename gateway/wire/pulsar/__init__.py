"""The protocol of Apache Pulsar: its frames and commands, and what the gateway changes in them.

- A connection begins in `opening`; `session` decides frames that stop, with `incarnations` for
  producers and consumers (`handles`, `states`, `permits`, `closing`) and `lookups` for `chase`.
- `scanning` chooses the scanner: that of `scan`, the same with a compiled walker (`compiled`), or
  the one that verifies checksums (`checksums`).
- `rights` says what each command needs; `undecided` keeps commands that await a decision, `delays`
  those above a limit of requests.
- `addresses` rewrites every place of a broker's address.
"""
