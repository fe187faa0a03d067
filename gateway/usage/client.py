"""Writes records to topics and reads them, with the client library of the topics' protocol.

Only this module imports the client library. The library takes 20 MB and has threads of its own,
which a process that serves clients must not have. So only the shipper and commands import this
module.
"""

from __future__ import annotations

import os
import re
import ssl
import threading
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pulsar
from pulsar.schema import JsonSchema

from gateway.usage.avro import definition
from gateway.usage.sending import UnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from gateway.usage.records import Identity
    from gateway.usage.sending import Row
    from gateway.usage.shipment import Brief

Proof = tuple[str, bytes]
"""A method of authentication, and the credential that it sends."""

OPERATION = 10
"""Seconds in which brokers must respond, over reconnections. To open a topic takes up to some."""

CONFIRMED = 15_000
"""Milliseconds in which a batch must be confirmed, over reconnections of the library."""

AT_ONCE, LARGEST = 500, 256 << 10
"""Records and bytes after which a batch ends. The gateway ends batches, not the library, so that a
file which is sent twice is cut the same way: brokers that drop repeats know a batch by its first
record alone, and would drop a longer one with all that is new in it."""

CUT = "1"
"""Part of the names of producers. If batches are ever cut in another way, this must change too."""

TAKEN_AT_ONCE, LARGEST_TAKEN = 50_000, 32 << 20
"""Most messages and bytes of a batch that is taken from a topic, which a process keeps in
memory."""

_QUEUE = 500
"""Messages that brokers send before they are taken. Each may have some megabytes."""

_QUIET = 10_000
"""Milliseconds without a message after which no unacknowledged one is left before the end. Brokers
send their messages at once, and do not report that they have none. The messages of a broker that
stalls for longer stay unacknowledged, for the next time."""

_NEVER = 3_600_000
"""Milliseconds after which the library ends a batch."""

_LARGEST_BATCH = 4 << 20
"""Bytes after which the library ends a batch: more than `LARGEST` and the longest line."""

_BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/cert.pem",
)
"""Where machines keep the authorities that they trust. The library knows none of these places."""


@dataclass(frozen=True, slots=True)
class Service:
    """How to connect to brokers. `url`: the service URL of the brokers. `ca_file`: the file of
    trusted authorities; None: those that this machine trusts. `certificate`: the files of the
    client's certificate and key; None: no certificate is shown. `verify_host`: the broker's name
    must be in its certificate."""

    url: str
    ca_file: str | None = None
    certificate: tuple[str, str] | None = None
    verify_host: bool = True


def service_of(brief: Brief) -> Service:
    """Return how to connect to the brokers that a shipper's `Brief` names."""
    pair = (brief.certificate_file, brief.key_file) if brief.certificate_file else None
    return Service(brief.url, brief.ca_file or None, pair, brief.verify_host)


class Client:
    """A client of brokers. `proof`: returns the credential. It is called for each connection,
    because a token may change.

    Methods raise `UnavailableError`.
    """

    def __init__(self, service: Service, proof: Callable[[], Proof]) -> None:
        certificate, key = service.certificate or (None, None)
        try:
            self._client = pulsar.Client(
                service.url,
                authentication=_authentication(proof, service),
                operation_timeout_seconds=OPERATION,
                tls_trust_certs_file_path=service.ca_file or trusted(),
                tls_validate_hostname=service.verify_host,
                tls_certificate_file_path=certificate,
                tls_private_key_file_path=key,
                stats_interval_in_seconds=0,
                logger=pulsar.FileLogger(pulsar.LoggerLevel.Info, _LOG.path),
            )
        except (pulsar.PulsarException, RuntimeError, ValueError) as error:
            raise _unavailable(error) from None

    def send(self, topic: str, kind: type[Identity], producer: str, rows: Iterable[Row]) -> None:
        """Send records to a topic, and return when brokers have confirmed all of them. `kind`: the
        class of the records. `producer`: a producer name that no other process uses; the `seq` of
        the rows that are sent under this name must increase."""
        _LOG.clear()
        try:
            opened = self._client.create_producer(
                topic,
                producer_name=f"{producer}-{CUT}",
                schema=_Described(kind),
                send_timeout_millis=CONFIRMED,
                compression_type=pulsar.CompressionType.ZSTD,
                max_pending_messages=2 * AT_ONCE,
                block_if_queue_full=True,
                batching_enabled=True,
                batching_max_messages=2 * AT_ONCE,
                batching_max_allowed_size_in_bytes=_LARGEST_BATCH,
                batching_max_publish_delay_ms=_NEVER,
            )
            for batch in batches(rows, lambda row: len(row.line), AT_ONCE, LARGEST):
                _send(opened, batch)
            opened.close()
        except pulsar.PulsarException as error:
            raise _unavailable(error) from None

    def read(self, topic: str) -> Iterator[bytes]:
        """Yield the payloads of a topic's messages, one partition after the other, each from the
        first message that brokers keep to the last one."""
        try:
            for part in self._client.get_topic_partitions(topic):
                reader = self._client.create_reader(part, pulsar.MessageId.earliest)
                while reader.has_message_available():
                    yield reader.read_next(OPERATION * 1000).data()
                reader.close()
        except pulsar.PulsarException as error:
            raise _unavailable(error) from None

    def take(self, topic: str, subscription: str) -> Iterator[list[bytes]]:
        """Yield the payloads of messages that a subscription has not acknowledged, in batches. The
        partitions are read one after the other, each up to the message that was its last one when
        reading began. A batch is acknowledged when the caller asks the iterator for the next batch.
        The first call creates the subscription, at the first message that brokers keep. Only one
        process at a time may use the subscription."""
        _LOG.clear()
        try:
            for part in self._client.get_topic_partitions(topic):
                consumer = self._client.subscribe(
                    part,
                    subscription,
                    consumer_type=pulsar.ConsumerType.Exclusive,
                    initial_position=pulsar.InitialPosition.Earliest,
                    receiver_queue_size=_QUEUE,
                )
                messages = _unacknowledged(consumer)
                for batch in batches(messages, _size, TAKEN_AT_ONCE, LARGEST_TAKEN):
                    yield [message.data() for message in batch]
                    consumer.acknowledge_cumulative(batch[-1])
                consumer.close()  # which sends what is acknowledged
        except pulsar.PulsarException as error:
            raise _unavailable(error) from None

    def partitions(self, topic: str) -> int:
        """Return the number of a topic's partitions; 1 if the topic is not partitioned, or does not
        exist yet and can be created."""
        _LOG.clear()
        try:
            return len(self._client.get_topic_partitions(topic))
        except pulsar.PulsarException as error:
            raise _unavailable(error) from None

    def close(self) -> None:
        """Close the connection without waiting for brokers to respond."""
        with suppress(pulsar.PulsarException):
            self._client.shutdown()


class _Log:
    """The log of the library, in memory. Its lines explain most errors better than its exceptions,
    which call a refused connection a timeout. All clients of the process share one."""

    def __init__(self) -> None:
        self._file = os.memfd_create("client.log") if hasattr(os, "memfd_create") else None
        self.path = os.devnull if self._file is None else f"/proc/self/fd/{self._file}"

    def clear(self) -> None:
        """Remove all lines."""
        if self._file is not None:
            os.ftruncate(self._file, 0)

    def last(self) -> str:
        """Return the text of the last line about a connection, preferably of a warning or an error;
        empty if no line is about a connection. Removes all lines."""
        if self._file is None:
            return ""
        log = os.pread(self._file, _LARGEST_LOG, 0).decode(errors="replace")
        self.clear()
        lines = list(_TELLING.finditer(log))
        wrong = [line for line in lines if line["level"] != "INFO"]
        return next((line["text"][:_LONGEST_REASON] for line in reversed(wrong or lines)), "")


_TELLING = re.compile(
    r" (?P<level>INFO|WARN|ERROR) .* ClientConnection:\d+ \| "
    r"(?P<text>(?!.*(Connection closed with|Connected to|(Create|Destroyed) )).*)"
)
"""Lines about a connection, except those which say only that it was opened or closed."""

_LARGEST_LOG, _LONGEST_REASON = 1 << 20, 300
"""Bytes of the log that are read, and characters of a line that are reported."""

_LOG = _Log()


class _Described(JsonSchema):  # type: ignore[misc, unused-ignore]
    """The schema of messages whose payload is encoded already."""

    def __init__(self, kind: type[Identity]) -> None:
        self._kind = kind
        super().__init__(self)

    def schema(self) -> dict[str, Any]:
        """Return the Avro schema of the messages. The client library calls this method."""
        return definition(self._kind)

    def encode(self, obj: bytes) -> bytes:
        return obj


class _Receipts:
    """The results of a batch, which threads of the library report."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._number = 0
        self._failed: Any = None

    def take(self, result: Any, _: object) -> None:
        with self._changed:
            self._number += 1
            if result != pulsar.Result.Ok:
                self._failed = result
            self._changed.notify()

    def wait(self, number: int) -> None:
        """Wait until `number` receipts have come. Raises `UnavailableError` if a receipt reports an
        error, or if a receipt does not come in time."""
        with self._changed:
            came = self._changed.wait_for(lambda: self._number >= number, 2 * CONFIRMED / 1000)
            if self._failed is not None or not came:
                name = "Timeout" if self._failed is None else self._failed.name
                raise UnavailableError(f"{name}: {_LOG.last()}".removesuffix(": "))


def _send(producer: Any, batch: list[Row]) -> None:
    """Send a batch, and wait for its receipts."""
    receipts = _Receipts()
    for row in batch:
        producer.send_async(
            row.line,
            receipts.take,
            partition_key=row.key,
            sequence_id=row.seq,
            event_timestamp=row.time_ms,
        )
    producer.flush()
    receipts.wait(len(batch))


def _unacknowledged(consumer: Any) -> Iterator[Any]:
    """Yield the messages of a subscription up to the last one of its topic."""
    last = consumer.get_last_message_id()
    if last.entry_id() < 0:  # nothing was ever there
        return
    while True:
        try:
            message = consumer.receive(_QUIET)
        except pulsar.Timeout:
            if not consumer.is_connected():
                raise
            return
        yield message
        if message.message_id() >= last:
            return


def _size(message: Any) -> int:
    return len(message.data())


_Item = TypeVar("_Item")


def batches(
    items: Iterable[_Item], size_of: Callable[[_Item], int], most: int, largest: int
) -> Iterator[list[_Item]]:
    """Yield the items in lists. A list is complete when it has `most` items, or items of `largest`
    bytes together."""
    batch: list[_Item] = []
    size = 0
    for item in items:
        batch.append(item)
        size += size_of(item)
        if len(batch) >= most or size >= largest:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _authentication(proof: Callable[[], Proof], service: Service) -> pulsar.Authentication | None:
    method, data = proof()
    match method:
        case "token":
            return pulsar.AuthenticationToken(partial(_token, proof))
        case "basic":
            username, _, password = data.decode(errors="replace").partition(":")
            return pulsar.AuthenticationBasic(username, password)
        case "tls" if service.certificate is not None:
            return pulsar.AuthenticationTLS(*service.certificate)
    return None


def _token(proof: Callable[[], Proof]) -> str:
    """Return the current token, for a thread of the library at each connection. Brokers refuse a
    token that is not text."""
    return proof()[1].decode(errors="replace")


def trusted() -> str | None:
    """Return the path of this machine's file of trusted certificate authorities; None if there is
    no such file, so that the client library must use its own authorities."""
    own = ssl.get_default_verify_paths().cafile  # that of SSL_CERT_FILE comes first
    return next((file for file in (own, *_BUNDLES) if file and Path(file).exists()), None)


def _unavailable(error: Exception) -> UnavailableError:
    name = type(error).__name__ if isinstance(error, pulsar.PulsarException) else str(error)
    detail = _LOG.last()
    return UnavailableError(f"{name}: {detail}" if detail else name)
