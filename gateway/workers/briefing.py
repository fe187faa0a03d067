"""The first message to a worker.

The configuration is the one that the parent read, even if the file has changed since, so that a
restarted worker fits the sockets that it inherits. It is pickled, as rules are (`reload.reader`):
only the parent can write to the channel. Secrets pass that way too, and so appear neither in a
command line nor in an environment.
"""

from __future__ import annotations

import base64
import pickle
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gateway.assembly import Inherited
from gateway.config.model import Configuration
from gateway.verifiers import fresh_secret


@dataclass(frozen=True, slots=True)
class Briefing:
    """What a worker is told in the first message. `worker`: the worker's number, from 1 to
    `workers`. `descriptors`: file descriptors of listening sockets, by listener. `seals`, `secret`:
    see `Inherited`."""

    worker: int
    workers: int
    configuration: Configuration
    trace: bool
    descriptors: Mapping[str, Sequence[int]]
    seals: Mapping[str, bytes]
    secret: bytes = field(default_factory=fresh_secret, repr=False)

    def inherited(self) -> Inherited:
        """Return the sockets and secrets that the worker inherits. Call this once, in the
        worker."""
        sockets = {name: list(map(_socket, numbers)) for name, numbers in self.descriptors.items()}
        return Inherited(sockets, self.seals, self.worker, self.workers, self.secret)


def encode(briefing: Briefing) -> str:
    """Return a briefing as text, for a message on the channel."""
    return base64.b64encode(pickle.dumps(briefing)).decode()


def decode(text: Any) -> Briefing:
    """Return the briefing that `encode` has encoded."""
    briefing = pickle.loads(base64.b64decode(text))  # noqa: S301 - see above
    assert isinstance(briefing, Briefing)
    return briefing


def _socket(descriptor: int) -> socket.socket:
    sock = socket.socket(fileno=descriptor)
    sock.set_inheritable(False)  # the worker's own child processes must not inherit it
    sock.setblocking(False)
    return sock
