"""A transparent gateway between messaging clients and their brokers."""

__version__ = "0.1.0"
