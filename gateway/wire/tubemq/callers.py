"""Who asks: found out for each request, as clients of several users may share a connection.

A client shows one of these, each with the request itself:

- to a master: its name and a signature, or a token in text
- to a broker: a token or a signature in text, or a token as a number, which is for the id that the
  client gives itself; consumers in Java show the number alone
- nothing: consumers in Java do not sign when they register, and requests for messages have no room
  for it

So a consumer that registers and shows nothing is answered here as if it were registered, and asked
for a signature in the reply to its heartbeat. It is known then. As the master has never heard of
it, it registers anew, which passes. And who has registered for a partition at a broker, or reports
it in a heartbeat, may ask for its messages, on the same connection. A consumer whose connection is
new does not register again, so it waits for its next heartbeat.

A client that is known by its connection (by a certificate, or because all are let in) need not show
anything.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from gateway.wire.contract import Credential, Denial, Principal, Refusal
from gateway.wire.services import NUMBER_SHOWN, Services, Tokens
from gateway.wire.subject import Subject
from gateway.wire.tubemq import methods
from gateway.wire.tubemq.addresses import topic_of
from gateway.wire.tubemq.context import Client

SIGNATURE = "signature"
"""The method of `identity` by which requests are verified."""

BELIEVED = 60.0
"""Seconds for which a credential is not verified again: each message of a producer shows it."""

MOST_BELIEVED = 16
"""Credentials of one connection that are kept for it."""

KEPT_SIZE = 4_000
"""Bytes of the budget for what is kept of a consumer, or of its registration for a partition: names
of a client and a group have up to 1024 characters each."""

Registration = tuple[str, str, str, int]
"""A registration at a broker: client, group, topic, partition."""


class Asking(NamedTuple):
    """Who asks. `credential`: what it has shown, if it gets tokens for that."""

    subject: Subject
    credential: Credential | None = None


class Callers:
    """The clients of one connection. `has_proven`: whether any has proven who it is."""

    __slots__ = ("_believed", "_client", "_consumers", "_registrations", "_services", "has_proven")

    def __init__(self, services: Services, client: Client) -> None:
        self._services = services
        self._client = client
        self._believed: dict[bytes, tuple[Subject, float]] = {}
        self._consumers: dict[str, Credential] = {}  # by the ids of clients
        self._registrations: dict[Registration, Subject] = {}
        self.has_proven = False

    def find(self, number: int, message: Any, now: float) -> Asking | Denial | None:
        """Return who asks; a denial: what it shows is wrong; None: it shows nothing."""
        if number in (methods.GET_MESSAGES, methods.COMMIT):
            subject = self._registrations.get(registration_of(message))
            return None if subject is None else Asking(subject)
        shown = _shown(number, message)
        if not shown and number in methods.REGISTER and message.clientId in self._consumers:
            shown = self._consumers[message.clientId].data
        if not shown:
            return None
        found = self._verified(shown, now)
        if isinstance(found, Denial):
            return found
        credential = None if shown.startswith(NUMBER_SHOWN) else Credential(SIGNATURE, shown)
        return Asking(found, credential)

    def tokens(self, asking: Asking, client: str) -> Tokens | None:
        """Return the tokens for the reply to who has asked a master."""
        if asking.credential is None:
            return None
        found = self._services.tokens(asking.credential, client)
        if found is not None and (client in self._consumers or self._keeps()):
            self._consumers[client] = Credential(SIGNATURE, found.text.encode())
        return found

    def note(self, number: int, message: Any, subject: Subject) -> Denial | None:
        """Note for which partitions a consumer registers, or reports that it has; return why not.
        Raises `PeerError`."""
        if number == methods.REGISTER_PARTITION:
            return self._registered(message, subject)
        if number == methods.BEAT_PARTITIONS:
            for text in message.partitionInfo:  # whether it is true, the broker knows
                topic, partition = topic_of(text)
                self._add((message.clientId, message.groupName, topic, partition), subject)
        return None

    def _registered(self, message: Any, subject: Subject) -> Denial | None:
        registration = registration_of(message)
        if message.opType != methods.UNREGISTER:
            return self._add(registration, subject)
        if self._registrations.pop(registration, None) is not None:
            self._client.quota.give_back(KEPT_SIZE)
        return None

    def _add(self, registration: Registration, subject: Subject) -> Denial | None:
        if registration not in self._registrations and not self._keeps():
            return Denial(Refusal.TOO_MANY, "no room for another partition")
        self._registrations[registration] = subject
        return None

    def _keeps(self) -> bool:
        """Take room for something that is kept; return whether there is some."""
        if not self._client.quota.fits(KEPT_SIZE):
            return False
        self._client.quota.take(KEPT_SIZE)
        return True

    def _verified(self, shown: bytes, now: float) -> Subject | Denial:
        known = self._believed.get(shown)
        if known is not None and now < known[1]:
            return known[0]
        principal = self._services.authenticate(Credential(SIGNATURE, shown))
        if isinstance(principal, Denial):
            return principal
        assert isinstance(principal, Principal), "signatures are verified from memory"
        self.has_proven = True
        caller = self._client.subject.caller._replace(principal=principal.name, method=SIGNATURE)
        if len(self._believed) >= MOST_BELIEVED:
            self._believed.clear()
        until = now + min(BELIEVED, self._services.left(principal))
        self._believed[shown] = Subject(caller), until
        return self._believed[shown][0]


def registration_of(message: Any) -> Registration:
    """Return the registration of a consumer that registers for a partition, or asks for messages
    of it."""
    return message.clientId, message.groupName, message.topicName, message.partitionId


def has_proof(message: Any) -> bool:
    """Return whether requests of this kind have room for what a client shows."""
    return "authInfo" in message.DESCRIPTOR.fields_by_name


def is_signed(message: Any) -> bool:
    """Return whether a request has a signature, or what a broker takes for one."""
    if not has_proof(message) or not message.HasField("authInfo"):
        return False
    info = message.authInfo
    if "authInfo" in info.DESCRIPTOR.fields_by_name:
        return bool(info.HasField("authInfo"))
    return bool(info.authAuthorizedToken)


def _shown(number: int, message: Any) -> bytes:
    """Return what a request shows, as the method `signature` reads it; nothing if it shows none."""
    if not message.HasField("authInfo"):
        return b""
    info = message.authInfo
    if number in methods.OF_BROKER:
        if info.authAuthorizedToken:
            return _text(info.authAuthorizedToken)
        token = info.visitAuthorizedToken
        return NUMBER_SHOWN + token.to_bytes(8) + message.clientId.encode() if token > 0 else b""
    if info.HasField("authInfo"):
        signed = info.authInfo
        said = f"{signed.userName} {signed.timestamp} {signed.nonce} {signed.signature}"
        return _text(said)
    return _text(info.authorizedToken)


def _text(said: str) -> bytes:
    """Return a text as the method `signature` reads it: never as a number."""
    return said.lstrip("\0").encode()
