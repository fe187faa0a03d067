"""Rewrites fields as the table in `fields` says: clients are sent the gateway's addresses, and
servers those of brokers; servers get other ids of clients; texts lose what belongs to others.

A list of brokers has a stamp (a version number). A master sends the list only to clients that show
another stamp. The list that the gateway sends to clients also depends on the addresses that the
gateway has for brokers. So the gateway adds to the master's stamp a number that is derived from
these addresses, and subtracts it again from the stamps that clients show. A client whose list comes
from a gateway with other addresses therefore shows a wrong stamp, and the master sends it the list
again.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from gateway.wire.address import Address
from gateway.wire.services import Services
from gateway.wire.slices import Slices
from gateway.wire.tubemq.addresses import (
    Towards,
    address_of,
    broker_text,
    brokers,
    failure,
    partition,
)
from gateway.wire.tubemq.clients import Own, known_as
from gateway.wire.tubemq.errors import about_others
from gateway.wire.tubemq.fields import Care, places
from gateway.wire.tubemq.names import May, read_topic
from gateway.wire.tubemq.slices import MANY, changed

LEAST_STAMP = 1
"""The least stamp of a list. Lower ones stand for none: -1 of producers, -2 of consumers."""

LONGEST_TEXT = 4096
"""Characters of a text for people; longer ones are cut. Texts repeat lists that clients choose, and
to look for addresses in a megabyte takes 100 ms."""

_ADDED = 1 << 20
"""Exceeds all numbers that are added to stamps, which are milliseconds: this is a quarter of an
hour."""

_LARGEST = (1 << 63) - 1


class Scope(NamedTuple):
    """What the rewriting of one message depends on. `shown`: the client as the receiving peer knows
    it, `client@group`. `may`: None if no rules grant rights. `hides`: texts must not show what
    belongs to other clients."""

    own: Own
    shown: str
    may: May | None
    hides: bool = False

    def may_use(self, topic: str) -> bool:
        """Return whether the client has the right on a topic, given its name."""
        if self.may is None:
            return True
        name = read_topic(topic)
        return name is not None and self.may(name)


def own_of(message: Any, principal: str | None) -> Own:
    """Return the client and the group of a request. `principal`: who sent it; None if that is not
    known."""
    id, group = message.clientId, getattr(message, "groupName", "")
    if principal is None or all(it.care is not Care.CLIENT for it in places(message.DESCRIPTOR)):
        return Own(id, id, group)
    return Own(id, known_as(principal, id), group)


@dataclass(slots=True)
class Rewriting:
    """Rewrites the messages of all connections of one listener. `tls`: the gateway connects to
    brokers by TLS."""

    services: Services
    tls: bool = False
    _added: int = 0  # to stamps; 0: no list was sent yet

    def change_request(self, message: Any, scope: Scope) -> Slices[None]:
        """Rewrite a client's message to a server, in place. Raises `PeerError` if an address in it
        is malformed."""
        for path, name, care in places(message.DESCRIPTOR):
            part = _part(message, path) if path else message
            if care is Care.CLIENT:
                part.clientId = scope.own.known_as
            elif care is Care.STAMP:
                if part.HasField(name):
                    setattr(part, name, self._master_stamp(getattr(part, name)))
            elif care in _LISTS:
                yield from _change_list(getattr(part, name), care, scope, self._broker_address)

    def change_reply(self, message: Any, scope: Scope) -> Slices[None]:
        """Rewrite a server's message to a client, in place. Raises `PeerError` if an address in it
        is malformed."""
        for path, name, care in places(message.DESCRIPTOR):
            part = _part(message, path) if path else message
            if care is Care.TEXT:
                self._change_text(message, scope)
            elif care is Care.BROKERS:
                yield from self._tell_brokers(getattr(part, name))
            elif care is Care.STAMP:
                if part.HasField(name) and getattr(part, name) >= LEAST_STAMP:
                    setattr(part, name, min(_LARGEST, getattr(part, name) + self._added))
            elif care in _LISTS:
                yield from _change_list(getattr(part, name), care, scope, self._gateway_address)

    def leaves(self, message: Any) -> bool:
        """Return whether a reply with messages can be forwarded unchanged, because it reports
        success and its text has no broker address."""
        return bool(message.success and message.errMsg == self.services.clean(message.errMsg))

    def clean(self, text: str, own: Own) -> str:
        """Return a text for people without addresses of brokers, in which the client has the id
        that it gave itself."""
        if len(text) > LONGEST_TEXT:  # between words: a part of an address would not be found
            text = text[:LONGEST_TEXT].rpartition(" ")[0]
        if own.known_as != own.id:
            text = text.replace(own.known_as, own.id)
        return self.services.clean(text)

    def _change_text(self, message: Any, scope: Scope) -> None:
        """Change the text of a reply. That of a receipt is the number of the message, and stays."""
        text: str = message.errMsg
        if text.isdigit():
            return
        others = about_others(message) if scope.hides else None
        new = self.clean(text, scope.own) if others is None else others
        if new != text:
            message.errMsg = new

    def _tell_brokers(self, infos: Any) -> Slices[None]:
        if infos:
            texts = yield from changed(list(infos), self._told)
            self._added = 1 + zlib.crc32("\n".join(texts).encode()) % (_ADDED - 1)
            infos[:] = texts

    def _told(self, info: str) -> str:
        ((id, broker),) = brokers([info], tls=self.tls)
        return broker_text(id, self.services.advertise_node(id, broker))

    def _master_stamp(self, stamp: int) -> int:
        """Return the stamp that a master knows, given the one that a client shows."""
        return max(LEAST_STAMP, stamp - self._added) if stamp >= LEAST_STAMP else stamp

    def _broker_address(self, id: int, _: str) -> Address | None:
        """Return the address of a broker; None if it is unknown."""
        return self.services.broker(id)

    def _gateway_address(self, id: int, place: str) -> Address:
        """Return the address at which clients reach a broker. The address of an unknown broker is
        taken from the text `place`. Raises `PeerError` if it has none."""
        broker = self.services.broker(id)
        if broker is None:
            broker = address_of(place, tls=self.tls)
        return self.services.advertise_node(id, broker)


def _part(message: Any, path: tuple[str, ...]) -> Any:
    """Return the message in a message to which the path leads; an empty one if there is none."""
    for name in path:
        message = getattr(message, name)
    return message


def _change_list(texts: Any, care: Care, scope: Scope, towards: Towards) -> Slices[None]:
    if texts and not (care in _ONLY_FILTERED and scope.may is None):
        results = yield from changed(list(texts), partial(_LISTS[care], scope, towards))
        if len(texts) > MANY:
            yield
        texts[:] = results


def _offered(scope: Scope, _towards: Towards, text: str) -> str | None:
    return text if scope.may_use(text) else None


def _filtered(scope: Scope, _towards: Towards, text: str) -> str | None:
    return text if scope.may_use(text.partition("#")[0]) else None


def _subscription(scope: Scope, towards: Towards, text: str) -> str | None:
    partition = _partition(scope, towards, text.partition("#")[2])
    return None if partition is None else f"{scope.shown}#{partition}"


def _partition(scope: Scope, towards: Towards, text: str) -> str | None:
    topic = text.partition("#")[2].partition(":")[0]
    return partition(text, towards) if scope.may_use(topic) else None


def _failure(_scope: Scope, towards: Towards, text: str) -> str:
    return failure(text, towards)


_LISTS: Mapping[Care, Callable[[Scope, Towards, str], str | None]] = {
    Care.OFFERED: _offered,
    Care.FILTERED: _filtered,
    Care.SUBSCRIPTIONS: _subscription,
    Care.PARTITIONS: _partition,
    Care.FAILURES: _failure,
}
"""How a text of a list is changed: to another text, or to none. Each raises `PeerError` if the text
is malformed."""

_ONLY_FILTERED = frozenset({Care.OFFERED, Care.FILTERED})
