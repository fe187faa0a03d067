"""`gateway demo`: brokers, the gateway and real clients on one machine, with a live table.

`stage` starts the gateway and the clients as processes of their own; the sandbox brokers run in the
demonstration's process. `show` reads the gateway's metrics once a second (`figures`) and draws them
(`table`). At the end `summary` compares the clients' counts (`load`, `tally`) with the gateway's.
`pulsar_clients` and `kafka_clients` are the clients of one topic (`clients`) by a library of each.
The demonstration is not part of the data path, and nothing else imports it.
"""
