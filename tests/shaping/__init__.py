"""Limits under real clients: how exactly they hold, who else feels them, and what they cost.

`scenarios` are the values: who offers what, under which limit, by which way; `parts` lists those
that are measured. `play` lets one happen with `ways` (gateways, the broker itself, its proxy) and
`watch`es the gateway meanwhile; `stored` reads back what became of it, `gathered` puts together
what is known. `figures` are pure, `results` keeps them as lines of JSON, `table` and `picture` show
them. `cost`, `many` and `transactions` have loads of their own. `python -m tests.shaping` runs it
all.
"""
