"""The four families of failures, by whose fault each is.

A refusal is a value (`contract.Denial`), not an exception. Exceptions are for what should not
happen, and each family is handled in one place:

- `ConfigurationError`: a person's file is wrong; the text is printed whole, and the process does
  not start.
- `PeerError`: a client or broker broke its protocol; its pair ends.
- `UpstreamError`: the network or a broker failed; its pair ends, and the address is backed off.
- `InternalError`: a bug of the gateway; its pair ends, with a traceback in the log.
"""

BAD_CONFIGURATION = 2
"""Exit status of a process whose configuration or command line is wrong."""


class GatewayError(Exception):
    """Base class of the four families of failures."""


class ConfigurationError(GatewayError):
    """The configuration, or a file that it names, is wrong. The text is written for a person."""


class PeerError(GatewayError):
    """A client or broker sent bytes that its protocol does not allow."""


class UpstreamError(GatewayError):
    """A broker, or the connection to it, failed."""


class InternalError(GatewayError):
    """A bug of the gateway: something happened that cannot."""
