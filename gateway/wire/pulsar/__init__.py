"""The protocol of Apache Pulsar: its frames and commands, and what the gateway changes in them.

- A connection begins in `opening`; `session` decides frames that stop, with `incarnations` for
  producers and consumers (`handles`, `states`, `permits`, `closing`) and `lookups` for `chase`.
- `scanning` chooses the scanner: that of `scan`, the same with a compiled walker (`compiled`), or
  the one that verifies checksums (`checksums`).
- `rights` lists the right that each command needs; `undecided` keeps commands that await
  authorization, `delays` those above a rate limit; `throttle` pauses deliveries above a limit.
- `addresses` rewrites every place of a broker's address.
"""
