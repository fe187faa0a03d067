"""What becomes of a broker's answers on their way to the client, but for those of Fetch.

Addresses of brokers become the gateway's, what the gateway does not offer is taken out of
ApiVersions, and topics that the client may not use get their names and errors back.
"""

from __future__ import annotations

import struct
from collections.abc import Collection

from gateway.wire.account import Account, Action
from gateway.wire.address import Address
from gateway.wire.kafka.addresses import (
    EMPTIED,
    METADATA,
    PRODUCE,
    REWRITTEN,
    Node,
    emptied,
    rewritten,
)
from gateway.wire.kafka.book import Book
from gateway.wire.kafka.context import Listener
from gateway.wire.kafka.errors import ErrorCode
from gateway.wire.kafka.frames import API_VERSIONS, SIZE, Head, answer, body_of_answer
from gateway.wire.kafka.pending import Asked
from gateway.wire.kafka.schema import Api, api
from gateway.wire.kafka.substitutes import Substitutes
from gateway.wire.kafka.throttle import has_throttle, throttled
from gateway.wire.kafka.versions import offered
from gateway.wire.kafka.walk import plan, text_at, unsigned

WITH_IDS = 10
"""The first version of Metadata that tells ids of topics."""

BY_IDS = 12
"""The first version of Metadata that is asked for topics by their ids."""

_PRODUCED = frozenset({"Name", "TopicId", "ErrorCode"})


class Answering:
    """Changes the answers of one connection."""

    __slots__ = ("_book", "_ids", "_services", "_settings", "_substitutes")

    def __init__(self, listener: Listener, book: Book, substitutes: Substitutes) -> None:
        self._settings = listener.settings
        self._services = listener.settings.services
        self._ids = listener.ids
        self._book = book
        self._substitutes = substitutes

    def answer(self, asked: Asked, frame: bytes, throttle: int) -> bytes:
        """Return an answer as the client gets it. `throttle`: milliseconds that it has to wait.
        Raises `PeerError` if the answer is torn."""
        known = api(asked.key)
        assert known is not None
        start = body_of_answer(known, asked.version, frame)
        schema, version = known.response, asked.version
        if asked.key == METADATA and version >= WITH_IDS:
            self._ids.learn(schema, version, frame, start)
        if asked.key == PRODUCE:
            frame = self._produced(known, asked, frame, start)
        if throttle and has_throttle(schema, version):
            changed = bytearray(frame)
            throttled(schema, version, changed, start, throttle)
            frame = bytes(changed)
        if asked.key == API_VERSIONS:
            return _sized(offered(schema, version, frame, start))
        if asked.key in EMPTIED:
            return _sized(emptied(schema, version, frame, start, EMPTIED[asked.key]))
        if asked.key in REWRITTEN:
            return _sized(rewritten(schema, version, frame, start, self._advertise))
        return frame

    def _advertise(self, node: Node) -> Address:
        broker = Address(node.host, node.port, tls=self._settings.brokers_tls)
        return self._services.advertise_node(node.id, broker)

    def _produced(self, known: Api, asked: Asked, frame: bytes, start: int) -> bytes:
        """Count the receipts of a request, and give denied topics their names back."""
        for sent in asked.accounts:
            sent.receipts += 1
        schema, version = known.response, asked.version
        flexible = version >= schema.flexible
        changed: bytearray | None = None
        error: int | None = None
        account: Account | ErrorCode | None = None
        for place in plan(schema, version, _PRODUCED).walk(frame, start, len(frame)).places:
            if place.name == "ErrorCode":
                if error is not None and changed is not None:
                    changed[place.start : place.end] = error.to_bytes(2)
                elif isinstance(account, Account) and frame[place.start : place.end] != b"\0\0":
                    account.errors += 1
                    account = None
                continue
            topic = frame[place.start : place.end]
            if place.name == "Name":
                topic = text_at(frame, place, flexible=flexible) or b""
            original = self._substitutes.original(topic)
            error = None if original is None else original.error
            account = None
            if original is None:
                account = self._book.use(Action.PRODUCE, topic, by_id=place.name == "TopicId")
            else:
                changed = bytearray(frame) if changed is None else changed
                changed[place.end - len(topic) : place.end] = original.topic
        return frame if changed is None else bytes(changed)

    def rebootstrap(self, head: Head) -> bytes:
        """Return the answer to Metadata that sends a client back to its bootstrap servers."""
        known = api(METADATA)
        assert known is not None
        # No brokers, no cluster, no controller, no topics, and the error (KIP-1102).
        nothing = unsigned(1)
        body = bytes(4) + nothing + b"\0" + struct.pack(">i", -1) + nothing
        body += struct.pack(">h", ErrorCode.REBOOTSTRAP_REQUIRED) + b"\0"
        return answer(known, head.version, head.correlation, body)


def metadata_of(ids: Collection[bytes], correlation: int) -> tuple[int, bytes]:
    """Return the version and the frame of a request for the names of these ids."""
    topics = b"".join(id + unsigned(0) + b"\0" for id in ids)
    body = unsigned(len(ids) + 1) + topics + b"\0\0" + b"\0"
    head = struct.pack(">hhih", METADATA, BY_IDS, correlation, -1) + b"\0"
    frame = head + body
    return BY_IDS, SIZE.pack(len(frame)) + frame


def _sized(frame: bytes) -> bytes:
    return SIZE.pack(len(frame) - SIZE.size) + frame[SIZE.size :]
