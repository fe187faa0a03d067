"""Clients in other languages: small programs of ours on the published packages.

`builders` makes them, once for each machine; `programs` runs them; `go/` and `java/` are the same
program twice, and `python/` is the part of it that tests ask of older packages.
"""
