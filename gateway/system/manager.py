"""Takes sockets from a service manager such as systemd, and reports the process's state to it.

Sockets: the manager passes `LISTEN_FDS` descriptors, from 3 on, to the process `LISTEN_PID`, with
the names in `LISTEN_FDNAMES` (sd_listen_fds(3)). The sockets stay open in the manager. So if
clients connect while a gateway restarts, they wait in the kernel's queue for the next gateway
process, and none is refused.

Messages: the process sends datagrams to the Unix socket in `NOTIFY_SOCKET` (sd_notify(3)). If
`WATCHDOG_USEC` is set, the manager ends a process that has sent no message for that many
microseconds (sd_watchdog_enabled(3)).
"""

from __future__ import annotations

import math
import socket
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NoReturn

import trio

from gateway.errors import ConfigurationError

FIRST_DESCRIPTOR = 3
"""The descriptor of the first passed socket, after standard input, output and error."""

Sockets = Mapping[str, Sequence[socket.socket]]
"""Listening sockets by the name of their listener."""


@dataclass(frozen=True, slots=True)
class Manager:
    """A service manager; with the default arguments, no manager. `address`: the socket to which
    messages are sent; None: the manager wants no messages. `watchdog`: the seconds within which the
    manager must receive a message. `names`: the names of the sockets that the manager passes."""

    address: str | None = None
    watchdog: float = math.inf
    names: Sequence[str] = ()

    @classmethod
    def of(cls, environment: Mapping[str, str], process: int) -> Manager:
        """Return the service manager, such as systemd, that environment variables describe.
        `process`: the id of this process; variables for another process are ignored."""
        address = environment.get("NOTIFY_SOCKET")
        if address is not None and address.startswith("@"):
            address = f"\0{address[1:]}"  # an abstract socket
        mine = str(process)
        watchdog = math.inf
        if environment.get("WATCHDOG_PID", mine) == mine:
            with suppress(ValueError):
                watchdog = int(environment.get("WATCHDOG_USEC", "")) / 1e6
        if watchdog <= 0:  # which asks for nothing
            watchdog = math.inf
        names: list[str] = []
        if environment.get("LISTEN_PID") == mine:
            with suppress(ValueError):
                number = int(environment.get("LISTEN_FDS", ""))
                given = environment.get("LISTEN_FDNAMES", "").split(":")
                names = [*given, *[""] * number][:number]
        return cls(address, watchdog, names)

    def sockets(self, listeners: Iterable[str], first: int = FIRST_DESCRIPTOR) -> Sockets:
        """Return the sockets that the manager passes, by the name of their listener. `listeners`:
        the names of all listeners. `first`: the descriptor of the first socket.

        Raises `ConfigurationError` if a socket has a name that is not a listener's, or does not
        listen.
        """
        known, sockets = list(listeners), dict[str, list[socket.socket]]()
        for descriptor, name in enumerate(self.names, first):
            if name not in known:
                raise ConfigurationError(
                    f"the service manager passes a socket named {name!r}, which is no listener; "
                    f"FileDescriptorName= of its unit is one of: {', '.join(known)}"
                )
            sockets.setdefault(name, []).append(_taken(descriptor, name))
        return sockets

    def ready(self) -> None:
        """Tell the manager that clients may connect."""
        self._tell("READY=1")

    def stopping(self, seconds: float) -> None:
        """Tell the manager that the process will end within `seconds`."""
        self._tell("STOPPING=1", f"EXTEND_TIMEOUT_USEC={math.ceil(seconds * 1e6)}")

    async def keep_alive(self) -> NoReturn:
        """Until cancelled, tell the manager that the event loop runs, twice in each watchdog
        period."""
        while True:
            self._tell("WATCHDOG=1")
            await trio.sleep(self.watchdog / 2)

    @property
    def is_watching(self) -> bool:
        return self.address is not None and self.watchdog < math.inf

    def _tell(self, *lines: str) -> None:
        """Send a message. A failure is ignored: the manager itself notices a process that is not
        ready, or does not answer."""
        if self.address is None:
            return
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
            sock.setblocking(False)
            sock.sendto("\n".join(lines).encode(), self.address)


NOBODY = Manager()
"""Stands for no manager: passes no sockets, and gets no messages."""


def _taken(descriptor: int, name: str) -> socket.socket:
    """Return a socket that was passed, as listeners need it."""
    wrong = ConfigurationError(
        f"the socket named {name!r} that the service manager passes does not listen on TCP; "
        "ListenStream= of its unit is a port or an address, with Accept=no"
    )
    try:
        sock = socket.socket(fileno=descriptor)
    except OSError:
        raise wrong from None
    is_tcp = sock.family in (socket.AF_INET, socket.AF_INET6) and sock.type == socket.SOCK_STREAM
    if not is_tcp or not sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
        sock.detach()
        raise wrong
    sock.setblocking(False)
    sock.set_inheritable(False)
    return sock
