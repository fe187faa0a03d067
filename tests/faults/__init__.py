"""Faults of a real cluster and of gateways, under load: direct clients beside those through the
gateway, hit by the same event.

`faults` lists what happens, `trial` lets it happen once, `clients` are those who suffer it,
`results` keeps what became of them, `table` shows it. `python -m tests.faults` runs it all.
"""
