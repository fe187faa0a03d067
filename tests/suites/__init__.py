"""The client libraries' own tests, run directly and through the gateway.

`suite` defines such a suite, and has the common helpers; `rust` and `go` are one each. To add one,
write a module with a Suite, and a line in `__main__`.
"""
