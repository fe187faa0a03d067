"""What a worker is told first.

The configuration is that of the parent, whatever its file says by now, so that a worker that is
started again fits the sockets that it gets. It is pickled, as rules are on their way
(`reload.passing`): it comes by a socket that only our own parent writes to. Secrets come that way
too, and stand neither in a command line nor in an environment.
"""

from __future__ import annotations

import base64
import pickle
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gateway.assembly import Inherited
from gateway.config.model import Configuration


@dataclass(frozen=True, slots=True)
class Briefing:
    """`worker`: its number, from 1. `descriptors`: those of the sockets that listen, by listener.
    `seals`: see `Inherited`.
    """

    worker: int
    configuration: Configuration
    trace: bool
    descriptors: Mapping[str, Sequence[int]]
    seals: Mapping[str, bytes]

    def inherited(self) -> Inherited:
        """Take the descriptors over; to be called once, in the worker."""
        sockets = {name: list(map(_socket, them)) for name, them in self.descriptors.items()}
        return Inherited(sockets, self.seals)


def written(briefing: Briefing) -> str:
    """As it passes."""
    return base64.b64encode(pickle.dumps(briefing)).decode()


def read(text: Any) -> Briefing:
    """What was written."""
    briefing = pickle.loads(base64.b64decode(text))  # noqa: S301 - see above
    assert isinstance(briefing, Briefing)
    return briefing


def _socket(descriptor: int) -> socket.socket:
    sock = socket.socket(fileno=descriptor)
    sock.set_inheritable(False)  # what we start ourselves is no worker
    sock.setblocking(False)
    return sock
