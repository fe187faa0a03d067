"""Limits with real clients: how exactly they hold, which other clients they affect, and what they
cost.

`scenarios` are values: the clients, their load, the limit and the way; `parts` lists those to
measure. `play` runs one with `ways` (gateways, the broker itself, its proxy) and `watch`es the
gateway meanwhile; `stored` reads the result back from the broker, and `gathered` combines all
observations. `figures` are pure, `results` stores them as lines of JSON, `table` and `picture` show
them. `cost`, `many` and `transactions` have loads of their own. `python -m tests.shaping` runs
everything.
"""
