"""A transparent gateway between messaging clients and their brokers."""

from gateway._pure import PURE_BY as PURE_BY  # first: it chooses how other modules are imported

__version__ = "0.1.0"
