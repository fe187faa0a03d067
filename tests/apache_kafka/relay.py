"""Relays frames between clients and one broker, and does to them what a gateway has to do.

It holds each frame whole and has a thread for each direction: enough to see what real clients and
brokers say, and that they go on working with what is put there.
"""

from __future__ import annotations

import socket
import threading
from collections import Counter
from contextlib import suppress

from gateway.wire.address import Address
from gateway.wire.kafka.addresses import (
    EMPTIED,
    FETCH,
    METADATA,
    PRODUCE,
    REWRITTEN,
    Node,
    emptied,
    rewritten,
)
from gateway.wire.kafka.frames import API_VERSIONS, SIZE, answer, body_of_answer, correlation
from gateway.wire.kafka.frames import request as head_of
from gateway.wire.kafka.pending import Asked, Pending
from gateway.wire.kafka.schema import Api, Schema, api
from gateway.wire.kafka.stream import Reader, Stream
from gateway.wire.kafka.topics import TopicIds
from gateway.wire.kafka.traffic import BY_ID, Portion, Traffic, fetched, produced
from gateway.wire.kafka.versions import offered, unsupported
from gateway.wire.kafka.walk import plan

HOST = "127.0.0.1"
NOBODYS = b"/"
"""Names of topics have none."""

TOPIC_AUTHORIZATION_FAILED = 29


class Relay:
    """A context in which clients reach a broker at `address`. `asked`: requests by API and version.
    `told`: all that clients got. `messages`: by topic, sent and received. `torn`: what failed.
    `denied`: a topic to which nobody may send."""

    def __init__(self, broker: tuple[str, int]) -> None:
        self._broker = broker
        self._listening = socket.create_server((HOST, 0))
        self.address = Address(HOST, self._listening.getsockname()[1])
        self.asked: Counter[tuple[str, int]] = Counter()
        self.told = bytearray()
        self.messages: Counter[tuple[str, str]] = Counter()
        self.torn: list[BaseException] = []
        self.ids = TopicIds()
        self.denied = b""
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Accept nobody any more."""
        self._listening.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                _Pair(self, client, socket.create_connection(self._broker))

    def count(self, kind: str, portions: list[Portion], *, by_id: bool) -> None:
        """Count what a frame has of each topic."""
        for it in portions:
            name = self.ids.name(it.topic) if by_id else it.topic
            assert name is not None, "a topic whose id no Metadata told"
            self.messages[kind, name.decode()] += it.messages


class _Pair:
    def __init__(self, relay: Relay, client: socket.socket, broker: socket.socket) -> None:
        self._relay = relay
        self._client = client
        self._broker = broker
        self._pending = Pending()
        self._lock = threading.Lock()
        for work in (self._requests, self._answers):
            threading.Thread(target=self._run, args=(work,), daemon=True).start()

    def _run(self, work: object) -> None:
        try:
            work()  # type: ignore[operator]
        except (OSError, EOFError):
            pass
        except BaseException as error:
            self._relay.torn.append(error)
        finally:
            for it in (self._client, self._broker):
                with suppress(OSError):
                    it.shutdown(socket.SHUT_RDWR)

    def _requests(self) -> None:
        while True:
            frame = _frame(self._client)
            head = head_of(frame)
            known = api(head.key)
            assert known is not None
            self._relay.asked[known.name, head.version] += 1
            if head.body < 0:
                assert head.key == API_VERSIONS
                with self._lock:
                    own = self._pending.answer(answer(known, 0, head.correlation, unsupported()))
                self._client.sendall(own)
                continue
            plan(known.request, head.version, whole=True).walk(frame, head.body, len(frame))
            if head.key == PRODUCE:
                frame = self._without_denied(known.request, head.version, frame, head.body)
                traffic = Traffic()
                _read(frame, head.body, produced(head.version, traffic))
                self._relay.count("sent", traffic.portions, by_id=head.version >= BY_ID[PRODUCE])
                if traffic.acks == 0:
                    self._broker.sendall(frame)
                    continue
            with self._lock:
                self._pending.ask(Asked(head.key, head.version, head.correlation))
            self._broker.sendall(frame)

    def _without_denied(self, schema: Schema, version: int, frame: bytes, start: int) -> bytes:
        """Return a request in which the denied topic has a name that no broker accepts."""
        found = plan(schema, version, frozenset({"Name"})).walk(frame, start, len(frame))
        changed = bytearray(frame)
        for place in found.places:
            at = place.end - len(self._relay.denied)
            if self._relay.denied and frame[at : place.end] == self._relay.denied:
                changed[at : place.end] = NOBODYS * (place.end - at)
        return bytes(changed)

    def _with_denied(self, schema: Schema, version: int, frame: bytes, start: int) -> bytes:
        """Return an answer in which it has its own name again, and the error that clients know."""
        wanted = frozenset({"Name", "ErrorCode"})
        changed, is_denied = bytearray(frame), False
        for place in plan(schema, version, wanted).walk(frame, start, len(frame)).places:
            if place.name == "Name":
                at = place.end - len(self._relay.denied)
                is_denied = frame[at : place.end] == NOBODYS * (place.end - at)
                if is_denied:
                    changed[at : place.end] = self._relay.denied
            elif is_denied:
                changed[place.start : place.end] = TOPIC_AUTHORIZATION_FAILED.to_bytes(2)
        return bytes(changed)

    def _answers(self) -> None:
        while True:
            frame = _frame(self._broker)
            with self._lock:
                asked = self._pending.next(correlation(frame))
            known = api(asked.key)
            assert known is not None
            frame = self._changed(known, asked.version, frame)
            with self._lock:
                frame += self._pending.answered()
            self._relay.told += frame
            self._client.sendall(frame)

    def _changed(self, known: Api, version: int, frame: bytes) -> bytes:
        start, schema = body_of_answer(known, version, frame), known.response
        end = plan(schema, version, whole=True).walk(frame, start, len(frame)).end
        assert end == len(frame)
        if known.key == FETCH:
            traffic = Traffic()
            _read(frame, start, fetched(version, traffic))
            self._relay.count("received", traffic.portions, by_id=version >= BY_ID[FETCH])
        if known.key == PRODUCE and self._relay.denied:
            frame = self._with_denied(schema, version, frame, start)
        if known.key == METADATA and version >= 10:
            self._relay.ids.learn(schema, version, frame, start)
        if known.key == API_VERSIONS:
            changed = offered(schema, version, frame, start)
        elif known.key in EMPTIED:
            changed = emptied(schema, version, frame, start, EMPTIED[known.key])
        elif known.key in REWRITTEN:
            changed = rewritten(schema, version, frame, start, self._own)
        else:
            return frame
        return SIZE.pack(len(changed) - SIZE.size) + changed[SIZE.size :]

    def _own(self, _node: Node) -> Address:
        return self._relay.address


def _read(frame: bytes, start: int, reader: Reader) -> None:
    stream = Stream(reader, len(frame) - start)
    assert stream.feed(frame, start, len(frame)) == len(frame)
    assert stream.is_done


def _frame(peer: socket.socket) -> bytes:
    size = _exactly(peer, SIZE.size)
    return size + _exactly(peer, SIZE.unpack(size)[0])


def _exactly(peer: socket.socket, count: int) -> bytes:
    data = bytearray()
    while len(data) < count:
        more = peer.recv(count - len(data))
        if not more:
            raise EOFError
        data += more
    return bytes(data)
