"""The load generator behind a proxy that numbers Kafka's requests itself."""

import socket
import struct
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path
from threading import Thread

import pytest

from tests.bench.load import Generator, build
from tests.bench.proxies import HOST
from tests.real.brokers.jars import MissingToolError
from tests.real.brokers.ports import free_ports

FIRST = 100
ID = struct.Struct(">i")
Frame = bytearray
"""Without its length. Of a request the id is at 4, of an answer at 0."""


class Renumbering:
    """A proxy of one connection. `answered`: the ids of the broker's answers, in their order."""

    def __init__(self, broker: str) -> None:
        self.answered: list[int] = []
        self._broker = broker
        self._listener = socket.create_server((HOST, 0))
        self.target = "{}:{}".format(*self._listener.getsockname())

    def serve(self) -> None:
        host, _, port = self._broker.partition(":")
        client, _ = self._listener.accept()
        with self._listener, client, socket.create_connection((host, int(port))) as broker:
            down = Thread(target=self._give_back, args=(broker, client))
            down.start()
            for frame, number in zip(frames(client), count(FIRST), strict=False):
                ID.pack_into(frame, 4, number)
                send(broker, frame)
            broker.shutdown(socket.SHUT_RDWR)
            down.join()

    def _give_back(self, broker: socket.socket, client: socket.socket) -> None:
        for frame in frames(broker):
            self.answered += ID.unpack_from(frame)
            send(client, frame)


def frames(source: socket.socket) -> Iterator[Frame]:
    """Yield what comes, until the connection is closed."""
    with closing(source.makefile("rb")) as file:
        try:
            while head := file.read(4):
                yield Frame(file.read(*ID.unpack(head)))
        except OSError:
            return


def send(to: socket.socket, frame: Frame) -> None:
    try:
        to.sendall(ID.pack(len(frame)) + frame)
    except OSError:
        return  # the load is over


@contextmanager
def renumbering(broker: str) -> Iterator[Renumbering]:
    proxy = Renumbering(broker)
    served = Thread(target=proxy.serve)
    served.start()
    yield proxy
    served.join(10)
    assert not served.is_alive()


@pytest.mark.parametrize(
    "load",
    [
        "pingpong --cmd produce --window 3",
        "pingpong --cmd fetch --window 4 --frame 5000",
        "pingpong --cmd fetch --current 1",
    ],
)
def test_answers_have_the_ids_that_the_proxy_gave_their_requests(tmp_path: Path, load: str) -> None:
    (port,) = free_ports(HOST, 1)
    try:
        generator = Generator(build(tmp_path), f"{HOST}:{port}")
    except MissingToolError as missing:
        pytest.skip(str(missing))
    arguments = [*load.split(), "--hello", "-", "--renumbers", "1", "--warm", "0"]
    with renumbering(generator.listen) as proxy:
        sample = generator.run(
            arguments, target=proxy.target, pid=None, cores=(-1, -1), seconds=0.2
        )
    answers = len(proxy.answered)
    assert proxy.answered == list(range(FIRST, FIRST + answers))
    assert answers > sample["frames"] > 10
