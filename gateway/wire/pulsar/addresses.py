"""Address rewriting: replaces broker addresses in commands to clients, in every field for them that
`fields` lists.

Addresses become advertised names: the same one in both URL fields, in the client's own scheme.
Texts lose the addresses of brokers that the gateway knows. Unknown fields stay as they are.
Source of the fields: fields of PulsarApi.proto up to 5.0, PIP-307 (assigned brokers), PIP-188
(migration), and error texts seen from brokers 4.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gateway.errors import PeerError
from gateway.wire.address import Address
from gateway.wire.contract import FORWARD, Denial, Direction, Effects, Refusal, Replace
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand
from gateway.wire.pulsar.commands import encode, kind_of, message_of
from gateway.wire.pulsar.fields import Act, Place, places_by_kind
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
class AddressRewriter:
    """Rewrites broker addresses for the clients of one listener.

    `longest_text`: most characters of a broker's text that clients get. `tls`: clients connect with
    TLS. `brokers_tls`: the gateway connects with TLS to brokers that state a TLS URL.
    """

    services: Services
    longest_text: int
    tls: bool = False
    brokers_tls: bool = False

    def of_broker(self, plain: str | bytes, with_tls: str | bytes) -> str | bytes:
        """Return a broker's URL to which the gateway connects: of both, the one that
        `brokers_tls` prefers, unless it is empty."""
        return choose(plain, with_tls, tls=self.brokers_tls)

    def advertised_url(self, url: str | bytes) -> str | Denial:
        """Return the URL that clients get in place of a broker's URL; a denial if `url` is no
        broker's URL."""
        address = parse(url)
        return _NOWHERE if address is None else self._url(self.services.advertise(address))

    def alias_url(self, broker: Address) -> str | Denial:
        """Return the URL of an alias of a broker: no client has a connection under this URL, so a
        client that gets it opens a new one."""
        return self._url(self.services.alias(broker))

    def lead_to_other_cluster(self, command: BaseCommand) -> bool:
        """Replace the broker's URL in a TOPIC_MIGRATED by the URL of the gateway in front of the
        other cluster. Return False, and change nothing, if no such gateway is known.

        A client uses this URL as its service URL from then on.
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
        """Return a broker's text with broker addresses removed, and cut to `longest_text`
        characters.

        `text`: bytes if the text is not UTF-8, as protobuf returns them. A text that is too long is
        cut before it is searched, because the search takes time.
        """
        most = self.longest_text
        if isinstance(text, bytes):
            text = text[: _LARGEST_CHARACTER * (most + 1)].decode(errors="replace")
        if len(text) <= most:
            return self.services.clean(text)
        return f"{self.services.clean(_whole_words(text, most))}{CUT}"

    def forwarded(self, command: BaseCommand, frame: bytes) -> Effects:
        """Return the effects that forward a broker's command to the client, with its addresses
        rewritten."""
        shown = self.frame_for_client(command, frame)
        return FORWARD if shown is frame else (Replace(shown),)

    def frame_for_client(self, command: BaseCommand, frame: bytes) -> bytes:
        """Return the frame of a broker's command for the client, with its addresses rewritten;
        `frame` itself if it has none."""
        return encode(command) if self.rewrite(command, kind_of(frame)) else frame

    def rewrite(self, command: BaseCommand, kind: int) -> bool:
        """Rewrite the addresses and the error text of a command in place. Return whether anything
        was changed. `kind`: the command's type."""
        changed = False
        for plain, tls in _ADDRESSES.get(kind, ()):
            changed |= _replace(self, plain.parts(message_of(kind, command)), plain, tls)
        for place in _CLEANED.get(kind, ()):
            message = message_of(kind, command)
            if place.act is Act.TEXT:
                changed |= self._clean(message, place.name)
            elif message.HasField(place.name):
                message.ClearField(place.name)
                changed = True
        return changed

    def _clean(self, message: Any, field: str) -> bool:
        text = getattr(message, field)
        cleaned = self.cleaned(text) if text else text
        if cleaned == text:
            return False
        setattr(message, field, cleaned)
        return True


_CLEANED = places_by_kind(Direction.TO_CLIENT, Act.REMOVED, Act.TEXT)
_ADDRESSES = {
    kind: tuple(zip(found[::2], found[1::2], strict=True))
    for kind, found in places_by_kind(Direction.TO_CLIENT, Act.ADDRESS).items()
}
"""The pairs of fields of a broker's address: without TLS, and with."""


def _whole_words(text: str, most: int) -> str:
    """Return the beginning of a text, cut between words, so that no part of an address is left."""
    return text[: 1 + max(text.rfind(separator, 0, most) for separator in _BETWEEN_WORDS)]


MOST_ADDRESSES = 1_000
MOST_BROKERS = 150
"""Addresses in one command of a broker, and different brokers among them. There is one address for
each segment of a topic, or each transaction coordinator: some dozens. The first address of a broker
costs 20 µs, and each further one 1 µs."""


def _replace(rewriter: AddressRewriter, messages: Sequence[Any], plain: Place, tls: Place) -> bool:
    """Put the advertised URL into both URL fields of messages; clear them if there is none. Return
    whether a message had an address. Raises `PeerError` if they are too many."""
    if len(messages) > MOST_ADDRESSES:
        raise PeerError(f"a command with {len(messages)} addresses")
    advertised: dict[str | bytes, str | Denial] = {}
    changed = False
    for message in messages:
        if message.HasField(plain.name) or message.HasField(tls.name):
            url = rewriter.of_broker(getattr(message, plain.name), getattr(message, tls.name))
            if url not in advertised:
                if len(advertised) >= MOST_BROKERS:
                    raise PeerError(f"a command with addresses of more than {MOST_BROKERS} brokers")
                advertised[url] = rewriter.advertised_url(url)
            for place in (plain, tls):
                _put(message, place, advertised[url])
            changed = True
    return changed


def _put(message: Any, place: Place, advertised: str | Denial) -> None:
    if not isinstance(advertised, Denial):
        setattr(message, place.name, advertised)
    elif place.field.is_required:
        setattr(message, place.name, "")
    else:
        message.ClearField(place.name)
