"""Clients in other languages: small programs that use the published packages.

`builders` makes them, once for each machine; `programs` runs them; `go/` and `java/` are the same
program twice, and `python/` is the part of it that tests need of older packages.
"""
