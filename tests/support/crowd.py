"""A crowd: connections that send as fast as they are read, whatever they are told, and are opened
again when they end."""

import selectors
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.real.gateways import HOST

Heard = tuple[bytes, bool]
"""What a client says after it got a frame, and whether it sends without end from then on."""


def _goes_on(_frame: bytes, _number: int, sends: bool) -> Heard:
    return b"", sends


def _sized(came: bytearray) -> int:
    return 4 + int.from_bytes(came[:4]) if len(came) >= 4 else 0


@dataclass(frozen=True)
class Talk:
    """What clients say, by their numbers. `greeting`: first; without one a client sends at once.
    `frame`: without end. `size`: bytes of a message. `length`: see `tubemq.frames.length`. `heard`:
    what follows a frame that a client got, which may be sending."""

    size: int
    frame: Callable[[int], bytes] = lambda _: b""
    greeting: Callable[[int], bytes] = lambda _: b""
    length: Callable[[bytearray], int] = _sized
    heard: Callable[[bytes, int, bool], Heard] = _goes_on


@dataclass
class _Line:
    """One connection: what is to be sent, what came of a frame, and whether it sends without
    end."""

    number: int
    sends: bool
    unsent: bytearray
    came: bytearray = field(default_factory=bytearray)


class Crowd:
    """Connections that send a frame without end. `received`: bytes of all messages, which are of
    one size. `ended`: how many connections have ended."""

    def __init__(self, port: int, connections: int, talk: Talk, host: str = HOST) -> None:
        self.received = self.ended = 0
        self._address = host, port
        self._talk = talk
        self._ends = threading.Event()
        self._selector = selectors.DefaultSelector()
        for number in range(connections):
            self._open(number)

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Send and receive until the block ends."""
        thread = threading.Thread(target=self._work)
        thread.start()
        try:
            yield
        finally:
            self._ends.set()
            thread.join()
            for key in tuple(self._selector.get_map().values()):
                key.fileobj.close()  # type: ignore[union-attr]

    def _open(self, number: int) -> None:
        made = socket.create_connection(self._address)
        made.setblocking(False)
        greeting = self._talk.greeting(number)
        line = _Line(number, not greeting, bytearray(greeting))
        self._selector.register(made, selectors.EVENT_READ | selectors.EVENT_WRITE, line)

    def _work(self) -> None:
        while not self._ends.is_set():
            for key, events in self._selector.select(0.1):
                assert isinstance(key.fileobj, socket.socket)
                try:
                    self._move(key.fileobj, key.data, events)
                except (OSError, EOFError):
                    self._selector.unregister(key.fileobj)
                    key.fileobj.close()
                    self.ended += 1
                    self._open(key.data.number)

    def _move(self, on: socket.socket, line: _Line, events: int) -> None:
        if events & selectors.EVENT_READ:
            data = on.recv(1 << 20)
            if not data:
                raise EOFError
            line.came += data
            while 0 < (length := self._talk.length(line.came)) <= len(line.came):
                frame = bytes(line.came[:length])
                del line.came[:length]
                self.received += length // self._talk.size * self._talk.size
                more, line.sends = self._talk.heard(frame, line.number, line.sends)
                line.unsent += more
        if events & selectors.EVENT_WRITE and line.sends and not line.unsent:
            line.unsent += self._talk.frame(line.number)
        if line.unsent:
            del line.unsent[: on.send(line.unsent)]
        waits = not (line.sends or line.unsent)
        wanted = selectors.EVENT_READ | (0 if waits else selectors.EVENT_WRITE)
        if self._selector.get_key(on).events != wanted:
            self._selector.modify(on, wanted, line)
