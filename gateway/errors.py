"""The four families of failures, by whose fault it is.

A refusal is a value (`contract.Denial`), not an exception.
These are for what should not happen, and each family is handled in one place:

- `ConfigurationError`: a person's file is wrong; printed whole, the process does not start.
- `PeerError`: a client or broker broke its protocol; its pair ends.
- `UpstreamError`: the network or a broker failed; its pair ends, the address is backed off.
- `InternalError`: our own bug; its pair ends, with a traceback in the log.
"""


class GatewayError(Exception):
    """Base of all four families."""


class ConfigurationError(GatewayError):
    """The configuration, or a file that it names, is wrong. The text is written for a person."""


class PeerError(GatewayError):
    """A peer sent bytes that its protocol does not allow."""


class UpstreamError(GatewayError):
    """A broker, or the way to it, failed."""


class InternalError(GatewayError):
    """Something that cannot happen, happened: a bug of the gateway."""
