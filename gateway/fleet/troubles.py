"""What went wrong with the store, in words for a log, without secrets."""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Iterator

import trio
from coredis import exceptions
from coredis.exceptions import (
    AuthenticationFailureError,
    AuthenticationRequiredError,
    AuthorizationError,
    BusyLoadingError,
    MovedError,
    ReadOnlyError,
    ResponseError,
    UnknownCommandError,
    WrongTypeError,
)

_LONGEST = 200
"""Characters of a text that the store wrote itself."""

_KNOWN: tuple[tuple[type[BaseException], str], ...] = (
    (AuthenticationRequiredError, "wants a password"),
    (AuthenticationFailureError, "does not take this username and password"),
    (AuthorizationError, "does not allow this user what the gateway needs"),
    (ReadOnlyError, "takes no writes: it is a replica"),
    (MovedError, "is a cluster, and only one server is understood"),
    (BusyLoadingError, "is loading its data"),
    (UnknownCommandError, "is too old: Redis 6 at least, or Valkey"),
    (trio.TooSlowError, "does not answer"),
    (TimeoutError, "does not answer"),
    (ssl.SSLCertVerificationError, "shows a certificate that is not trusted"),
    (ssl.SSLError, "does not speak TLS as it should"),
    (socket.gaierror, "has a name that does not resolve"),
)


def told(error: BaseException) -> str:
    """The cause of an error, as what is said of the store: "refuses connections"."""
    causes = list(_causes(error))
    for kind, text in _KNOWN:
        if any(isinstance(cause, kind) for cause in causes):
            return text
    for cause in causes:
        if isinstance(cause, OSError) and cause.errno:
            return f"cannot be reached: {os.strerror(cause.errno).lower()}"
    return str(error).partition("\n")[0][:_LONGEST] or type(error).__name__


def is_lost(error: BaseException) -> bool:
    """Whether a connection ended; not that the store said something."""
    ended = isinstance(error, exceptions.ConnectionError | OSError)
    return ended and not isinstance(error, BusyLoadingError | TimeoutError)


def is_of_one_limit(error: BaseException) -> bool:
    """Whether a script failed with the keys of its limit: what fails with all keys, the next beat
    finds."""
    return isinstance(error, WrongTypeError) or (
        type(error) is ResponseError and "user_script" in str(error)
    )


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error, what led to it, and so on; of groups all of it."""
    yield error
    for inner in getattr(error, "exceptions", ()):
        yield from _causes(inner)
    if error.__cause__ is not None:
        yield from _causes(error.__cause__)
