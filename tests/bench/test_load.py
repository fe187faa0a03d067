"""The load generator: behind a proxy that numbers Kafka's requests, and its frames of TubeMQ."""

import socket
import struct
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from itertools import count, cycle
from pathlib import Path
from threading import Thread
from typing import TypeVar

import pytest

from gateway.wire.pulsar.commands import kind_of
from gateway.wire.pulsar.frames import Kind
from gateway.wire.tubemq.envelopes import parsed, read_reply, read_request, written
from gateway.wire.tubemq.frames import framed, head, length, whole
from gateway.wire.tubemq.methods import METHODS
from tests.bench.load import Generator, build
from tests.bench.proxies import HOST
from tests.real.brokers.jars import MissingToolError
from tests.real.brokers.ports import free_ports

FIRST = 100
ID = struct.Struct(">i")
Frame = bytearray
"""Without its length. Of a request the id is at 4, of a response at 0."""


class Renumbering:
    """A proxy of one connection. `answered`: the ids of the broker's responses, in their order."""

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
            with suppress(OSError):  # the load generator may have closed both
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


def built(folder: Path) -> Generator:
    (port,) = free_ports(HOST, 1)
    try:
        return Generator(build(folder), f"{HOST}:{port}")
    except MissingToolError as missing:
        pytest.skip(str(missing))


P = TypeVar("P", "Renumbering", "Noting")


@contextmanager
def serving(proxy: P) -> Iterator[P]:
    """Have a proxy serve its connection while the block runs, and until it ends."""
    served = Thread(target=proxy.serve, daemon=True)  # it waits for ever if no load comes
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
    generator = built(tmp_path)
    arguments = [*load.split(), "--hello", "-", "--renumbers", "1", "--warm", "0"]
    with serving(Renumbering(generator.listen)) as proxy:
        sample = generator.run(arguments, target=proxy.target, cores=(-1, -1), seconds=0.2)
    responses = len(proxy.answered)
    assert proxy.answered == list(range(FIRST, FIRST + responses))
    assert responses > sample["frames"] > 10


class Noting:
    """A proxy that passes the bytes of one connection on, and keeps them. `up`: the client's;
    `down`: the broker's. `listener`: accepts the connection; several proxies may share it."""

    def __init__(self, broker: str, listener: socket.socket | None = None) -> None:
        self.up, self.down = bytearray(), bytearray()
        self._broker = broker
        self.listener = listener or socket.create_server((HOST, 0))
        self.target = "{}:{}".format(*self.listener.getsockname())

    def serve(self) -> None:
        host, _, port = self._broker.partition(":")
        client, _ = self.listener.accept()
        with self.listener, client, socket.create_connection((host, int(port))) as broker:
            down = Thread(target=pass_on, args=(broker, client, self.down))
            down.start()
            pass_on(client, broker, self.up)
            down.join()


def pass_on(source: socket.socket, to: socket.socket, kept: bytearray) -> None:
    """Pass on what comes until one of both is closed, and close the other."""
    try:
        while data := source.recv(1 << 16):
            kept += data
            to.sendall(data)
        to.shutdown(socket.SHUT_RDWR)
    except OSError:
        for end in source, to:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


def pulsar_frames(data: bytearray) -> Iterator[bytes]:
    """Yield the whole frames of Pulsar."""
    at = 0
    while at + 4 < len(data) and (end := at + 4 + ID.unpack_from(data, at)[0]) <= len(data):
        yield bytes(data[at:end])
        at = end


def tube_frames(data: bytearray) -> Iterator[bytes]:
    """Yield the whole frames of TubeMQ."""
    rest = memoryview(data)
    while 0 < (size := length(rest[:LARGEST].tobytes())) <= len(rest):
        yield rest[:size].tobytes()
        rest = rest[size:]


LARGEST = 1 << 16
"""Bytes: more than any frame here has."""


def request_anew(frame: bytes) -> bytes:
    """Return a request as the gateway writes it."""
    request = read_request(whole(frame).envelope)
    message = parsed(METHODS[request.body.method].request(), request.body.request)
    request.body.request = message.SerializeToString()
    return framed(head(frame).serial, written(*request))


def reply_anew(frame: bytes) -> bytes:
    """Return a reply as the gateway writes it."""
    connection, header, body, _ = read_reply(whole(frame).envelope)
    assert body is not None
    body.data = parsed(METHODS[body.method].reply(), body.data).SerializeToString()
    return framed(head(frame).serial, written(connection, header, body))


@pytest.mark.parametrize(
    "load", ["tube-send --window 3 --frame 20000", "tube-get --window 3 --batch 20"]
)
def test_frames_of_tubemq_stay_the_same_when_they_are_written_anew(
    tmp_path: Path, load: str
) -> None:
    """The load generator tells them apart by their sizes alone."""
    generator = built(tmp_path)
    arguments = ["pingpong", "--cmd", *load.split(), "--hello", "-", "--warm", "0"]
    with serving(Noting(generator.listen)) as proxy:
        sample = generator.run(arguments, target=proxy.target, cores=(-1, -1), seconds=0.2)
    requests, replies = (list(tube_frames(it)) for it in (proxy.up, proxy.down))
    assert len(replies) > sample["frames"] > 3
    assert [request_anew(it) for it in requests[:9]] == requests[:9]
    assert [reply_anew(it) for it in replies[:9]] == replies[:9]
    for passed in requests, replies:
        in_turn = cycle(range(3))
        assert [head(it).serial for it in passed] == [0, *(next(in_turn) for _ in passed[1:])]


@pytest.mark.parametrize("load", ["--cmd send", "--cmd message --dir down"])
def test_a_stream_at_a_rate_has_no_more_frames_than_that(load: str, tmp_path: Path) -> None:
    generator = built(tmp_path)
    arguments = ["stream", *load.split(), "--hello", "-", "--rate", "2000"]
    sample = generator.run(arguments, target=generator.listen, cores=(-1, -1), seconds=0.5)
    assert 0 < sample["frames_with_warm_up"] <= 2000 * (sample["secs"] + 1.0)


def streamed(folder: Path, load: str, connections: int) -> tuple[float, int]:
    """Run a load for so long that a frame has come. Return the frames that the load generator
    counts, and those that it has sent whole."""
    generator = built(folder)
    for seconds in (0.2, 2.0, 20.0):
        first = Noting(generator.listen)
        more = (Noting(generator.listen, first.listener) for _ in range(connections - 1))
        proxies = [first, *more]
        with ExitStack() as stack:
            for proxy in proxies:
                stack.enter_context(serving(proxy))
            sample = generator.run(
                load.split(), target=first.target, cores=(-1, -1), seconds=seconds
            )
        if sample["frames_with_warm_up"]:
            break
    sent = [kind_of(it) for proxy in proxies for it in pulsar_frames(proxy.up)]
    return sample["frames_with_warm_up"], sent.count(Kind.SEND)


@pytest.mark.parametrize("connections", [1, 3])
def test_a_stream_of_sizes_that_differ_counts_no_frame_that_has_not_come_whole(
    tmp_path: Path, connections: int
) -> None:
    """Else a gateway that counts all that comes would seem to have counted too few."""
    load = f"stream --mix 100,100,9000 --conns {connections} --warm 0 --hello -"
    counted, sent = streamed(tmp_path, load, connections)
    assert 0 < counted <= sent
