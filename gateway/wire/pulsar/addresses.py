"""Hide broker addresses in commands to clients, in every place that may hold one.

Addresses become advertised names: the same one in both URL fields, in the client's own scheme.
Texts lose the brokers that the gateway knows. Unknown fields stay as they are.
Source of the places: fields of PulsarApi.proto up to 5.0, PIP-307 (assigned brokers), PIP-188
(migration), and error texts seen from brokers 4.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from gateway.errors import PeerError
from gateway.wire.address import Address
from gateway.wire.contract import FORWARD, Denial, Direction, Effects, Refusal, Replace
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand
from gateway.wire.pulsar.commands import encode, kind_of
from gateway.wire.pulsar.rows import Commands
from gateway.wire.pulsar.urls import choose, parse, write
from gateway.wire.services import Services

CUT = "... (cut)"
"""The end of a text that was cut because it was too long."""

_BETWEEN_WORDS = " \n\t,;'\"()"
"""Characters that no address holds."""

_LARGEST_CHARACTER = 4
"""Bytes of the longest character in UTF-8."""

_NOWHERE = Denial(Refusal.NOT_READY, "no broker was named")


@dataclass(frozen=True, slots=True)
class Veil:
    """Hides brokers from the clients of one listener. `longest_text`: characters of a broker's text
    that clients get. `commands`: the places. `tls`: clients connect with TLS. `brokers_tls`: so
    does the gateway to brokers that have a URL for it."""

    services: Services
    longest_text: int
    commands: Commands
    tls: bool = False
    brokers_tls: bool = False

    def of_broker(self, plain: str | bytes, with_tls: str | bytes) -> str | bytes:
        """Return the URL of a broker that the gateway connects to, of those that it states."""
        return choose(plain, with_tls, tls=self.brokers_tls)

    def advertised_url(self, url: str | bytes) -> str | Denial:
        """Return the advertised URL in place of a broker's URL."""
        address = parse(url)
        return _NOWHERE if address is None else self._url(self.services.advertise(address))

    def alias_url(self, broker: Address) -> str | Denial:
        """Return the URL of a broker's alias, under which no client has a connection."""
        return self._url(self.services.alias(broker))

    def lead_to_other_cluster(self, command: BaseCommand) -> bool:
        """Put the other cluster's gateway into a TOPIC_MIGRATED; return False if none is known.

        A client takes the URL as its new service URL.
        """
        message = command.topicMigrated
        broker = parse(self.of_broker(message.brokerServiceUrl, message.brokerServiceUrlTls))
        gateway = None if broker is None else self.services.migrated(broker)
        if not isinstance(gateway, Address):
            return False
        message.brokerServiceUrl = message.brokerServiceUrlTls = write(gateway, tls=self.tls)
        return True

    def _url(self, address: Address | Denial) -> str | Denial:
        return address if isinstance(address, Denial) else write(address, tls=self.tls)

    def cleaned(self, text: str | bytes) -> str:
        """Return a broker's text for a client. Protobuf returns bytes if it is not UTF-8.

        A text that is too long is cut first, because searching it takes time.
        """
        most = self.longest_text
        if isinstance(text, bytes):
            text = text[: _LARGEST_CHARACTER * (most + 1)].decode(errors="replace")
        if len(text) <= most:
            return self.services.clean(text)
        return f"{self.services.clean(_whole_words(text, most))}{CUT}"

    def hidden(self, command: BaseCommand, frame: bytes) -> Effects:
        """Return the effects that send a broker's command on to the client."""
        shown = self.shown(command, frame)
        return FORWARD if shown is frame else (Replace(shown),)

    def shown(self, command: BaseCommand, frame: bytes) -> bytes:
        """Return a broker's frame as the client may see it."""
        return encode(command) if self.hide(command, kind_of(frame)) else frame

    def hide(self, command: BaseCommand, kind: int) -> bool:
        """Rewrite a command in place. Return whether anything was changed."""
        row = self.commands.rows[Direction.TO_CLIENT].get(kind)
        if row is None:
            return False
        changed = row.addresses is not None and row.addresses(self, command)
        return (row.text is not None and self._clean(command, row.text)) or changed

    def _clean(self, command: BaseCommand, place: tuple[str, str]) -> bool:
        message: Any = getattr(command, place[0])
        text = getattr(message, place[1])
        cleaned = self.cleaned(text) if text else text
        if cleaned == text:
            return False
        setattr(message, place[1], cleaned)
        return True


def _whole_words(text: str, most: int) -> str:
    """Return the beginning of a text, cut between words, so that no part of an address is left."""
    return text[: 1 + max(text.rfind(separator, 0, most) for separator in _BETWEEN_WORDS)]


MOST_ADDRESSES = 1_000
MOST_BROKERS = 150
"""Addresses in one command of a broker, and different brokers among them. There is one address for
each segment of a topic, or each transaction coordinator: some dozens. The first address of a broker
costs 20 µs, and each further one 1 µs."""


class _Urls(Protocol):
    """A message with the fields of a broker's URL and its TLS URL."""

    def HasField(self, field: Any) -> bool: ...  # noqa: N802

    def ClearField(self, field: Any) -> None: ...  # noqa: N802


def _replace(veil: Veil, message: _Urls, plain: str, tls: str) -> bool:
    """Put the advertised URL into both fields of a message; clear them if there is none."""
    return _replace_all(veil, (message,), plain, tls)


def _replace_all(veil: Veil, messages: Sequence[_Urls], plain: str, tls: str) -> bool:
    """Do the same in several messages. Raises `PeerError` if they are too many."""
    if len(messages) > MOST_ADDRESSES:
        raise PeerError(f"a command with {len(messages)} addresses")
    advertised: dict[str | bytes, str | Denial] = {}
    changed = False
    for message in messages:
        if message.HasField(plain) or message.HasField(tls):
            url = veil.of_broker(getattr(message, plain), getattr(message, tls))
            if url not in advertised:
                if len(advertised) >= MOST_BROKERS:
                    raise PeerError(f"a command with addresses of more than {MOST_BROKERS} brokers")
                advertised[url] = veil.advertised_url(url)
            _put(message, (plain, tls), advertised[url])
            changed = True
    return changed


def _put(message: _Urls, fields: tuple[str, str], advertised: str | Denial) -> None:
    for field in fields:
        if isinstance(advertised, Denial):
            message.ClearField(field)
        else:
            setattr(message, field, advertised)


def close_producer(veil: Veil, command: BaseCommand) -> bool:
    message = command.close_producer
    return _replace(veil, message, "assignedBrokerServiceUrl", "assignedBrokerServiceUrlTls")


def close_consumer(veil: Veil, command: BaseCommand) -> bool:
    message = command.close_consumer
    return _replace(veil, message, "assignedBrokerServiceUrl", "assignedBrokerServiceUrlTls")


def scalable_topic(veil: Veil, command: BaseCommand) -> bool:
    dag = command.scalableTopicUpdate.dag
    changed = _replace(veil, dag, "controller_broker_url", "controller_broker_url_tls")
    changed |= _replace_all(veil, dag.segment_brokers, "broker_url", "broker_url_tls")
    for segment in dag.segment_brokers:
        if not segment.HasField("broker_url"):
            segment.broker_url = ""  # required by the schema; empty means none
    return changed


def coordinators(veil: Veil, command: BaseCommand) -> bool:
    assignments = command.watchTcAssignmentsUpdate.snapshot.assignments
    return _replace_all(veil, assignments, "broker_service_url", "broker_service_url_tls")


def consumer_stats(_veil: Veil, command: BaseCommand) -> bool:
    """Clear `address`, where the broker sees the consumer: an inner address of the gateway."""
    message = command.consumerStatsResponse
    if not message.HasField("address"):
        return False
    message.ClearField("address")
    return True
