"""Identifies the client of each request, as clients of several users may share a connection.

A client authenticates with the request itself:

- to a master: by its name and a signature, or by a token in text
- to a broker: by a token or a signature in text, or by a token as a number, which is bound to the
  client id; consumers in Java send the number alone
- not at all: consumers in Java do not sign when they register, and requests for messages have no
  field for it

So a consumer that registers without a credential gets a synthetic success, and the reply to its
heartbeat asks it for a signature. From then on it is authenticated. As the master does not know the
consumer, it registers anew, which passes. A consumer that has registered for a partition at a
broker, or reports it in a heartbeat, may request the partition's messages on the same connection. A
consumer whose connection is new does not register again, so it waits for its next heartbeat.

A client that is authenticated by its connection (by a certificate, or as anonymous) needs no
credential in requests.
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
"""The method of `identity` that verifies requests."""

BELIEVED = 60.0
"""Seconds for which a credential is not verified again: each message of a producer has it."""

MOST_BELIEVED = 16
"""The most verified credentials that are kept for one connection."""

KEPT_SIZE = 4_000
"""Bytes of the budget that each kept consumer, and each registration for a partition, takes: names
of a client and a group have up to 1024 characters each."""

Registration = tuple[str, str, str, int]
"""A registration at a broker: client, group, topic, partition."""


class Asking(NamedTuple):
    """The client of a request. `credential`: the one that it has shown, if it gets tokens for
    that."""

    subject: Subject
    credential: Credential | None = None


class Callers:
    """The clients of one connection. `has_proven`: whether any of them has authenticated."""

    __slots__ = ("_believed", "_client", "_consumers", "_registrations", "_services", "has_proven")

    def __init__(self, services: Services, client: Client) -> None:
        self._services = services
        self._client = client
        self._believed: dict[bytes, tuple[Subject, float]] = {}
        self._consumers: dict[str, Credential] = {}  # by the ids of clients
        self._registrations: dict[Registration, Subject] = {}
        self.has_proven = False

    def find(self, number: int, message: Any, now: float) -> Asking | Denial | None:
        """Return the client of a request; a denial if its credential is wrong; None if it has none.
        `number`: the method."""
        if number in (methods.GET_MESSAGES, methods.COMMIT):
            subject = self._registrations.get(registration_of(message))
            return None if subject is None else Asking(subject)
        shown = _shown(number, message)
        if not shown and number in methods.REGISTER and message.clientId in self._consumers:
            shown = self._consumers[message.clientId].data
        if not shown:
            return None
        outcome = self._verified(shown, now)
        if isinstance(outcome, Denial):
            return outcome
        credential = None if shown.startswith(NUMBER_SHOWN) else Credential(SIGNATURE, shown)
        return Asking(outcome, credential)

    def tokens(self, asking: Asking, client: str) -> Tokens | None:
        """Return the tokens for a client's reply from the master, and keep them; None if it gets
        none. `client`: its id."""
        if asking.credential is None:
            return None
        tokens = self._services.tokens(asking.credential, client)
        if tokens is not None and (client in self._consumers or self._keeps()):
            self._consumers[client] = Credential(SIGNATURE, tokens.text.encode())
        return tokens

    def note(self, number: int, message: Any, subject: Subject) -> Denial | None:
        """Note the partitions that a consumer registers for, or reports in a heartbeat; return why
        a registration is refused. Raises `PeerError` if a partition is malformed."""
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
        """Take quota for one more kept value; return whether there was some."""
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
    """Return the registration that a request makes, or that a request for messages needs."""
    return message.clientId, message.groupName, message.topicName, message.partitionId


def has_proof(message: Any) -> bool:
    """Return whether messages of this kind have a field for a credential."""
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
    """Return the credential in a request, as the method `signature` reads it; empty if it has
    none."""
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
        proof = f"{signed.userName} {signed.timestamp} {signed.nonce} {signed.signature}"
        return _text(proof)
    return _text(info.authorizedToken)


def _text(text: str) -> bytes:
    """Return a text as the method `signature` reads it: never as a number."""
    return text.lstrip("\0").encode()
