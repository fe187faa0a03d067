"""Faults of a real cluster and of gateways, under load: direct clients and clients of the gateway
meet the same event.

`faults` lists the events, `trial` causes one, `clients` runs the clients, `results` stores what
became of them, `table` shows it. `python -m tests.faults` runs everything.
"""
