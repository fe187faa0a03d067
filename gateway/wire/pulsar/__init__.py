"""The protocol of Apache Pulsar: its frames and commands, and what the gateway changes in them.

- A connection begins in `opening`; `session` decides frames that stop, with `incarnations` for
  producers and consumers (`handles`, `states`, `permits`, `closing`) and `lookups` for `chase`.
- `scanning` makes the scanners of a connection: `to_broker` reads the client's frames, `to_client`
  the broker's.
- `fields` says what happens to each field of a command: by it `rights` authorizes commands and
  filters lists of topics, and `addresses` rewrites every place of a broker's address.
- `undecided` keeps commands that await authorization, `delays` those above a rate limit; `throttle`
  pauses deliveries above a limit.
"""
