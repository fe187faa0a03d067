"""Describes the store's errors in words for a log. The words contain no secrets."""

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
"""Characters that are logged of a text from the store."""

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


def describe(error: BaseException) -> str:
    """Return the cause of an error as the end of a sentence about the store, such as "refuses
    connections"."""
    causes = list(_causes(error))
    for kind, text in _KNOWN:
        if any(isinstance(cause, kind) for cause in causes):
            return text
    for cause in causes:
        if isinstance(cause, OSError) and cause.errno:
            return f"cannot be reached: {os.strerror(cause.errno).lower()}"
    return str(error).partition("\n")[0][:_LONGEST] or type(error).__name__


def is_disconnection(error: BaseException) -> bool:
    """Return True if the error means that the connection ended; False if the store replied with an
    error."""
    ended = isinstance(error, exceptions.ConnectionError | OSError)
    return ended and not isinstance(error, BusyLoadingError | TimeoutError)


def concerns_one_limit(error: BaseException) -> bool:
    """Return True if the error concerns one limit alone: a script failed on that limit's keys.

    If an error concerns all limits, the next heartbeat gets an error too.
    """
    return isinstance(error, WrongTypeError) or (
        type(error) is ResponseError and "user_script" in str(error)
    )


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield the error, the members of a group, and what caused each of them."""
    yield error
    for inner in getattr(error, "exceptions", ()):
        yield from _causes(inner)
    if error.__cause__ is not None:
        yield from _causes(error.__cause__)
