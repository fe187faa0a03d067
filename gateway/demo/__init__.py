"""`gateway demo`: brokers, the gateway and real clients on one machine, and a table that lives.

The gateway and the clients are processes of their own, started by `stage`; the sandbox brokers
live in the demo's process. `show` asks the gateway for its metrics once a second (`figures`) and
draws them (`table`). At the end `summary` holds what the clients counted (`load`, `tally`) against
what the gateway counted. It is no part of the data path, and nothing else imports it.
"""
