"""The tests that client libraries bring along, run directly and through the gateway.

`suite` says what such a suite is, and holds what all need; `rust` and `go` are one each. A further
one is a module with a Suite, and a line in `__main__`.
"""
