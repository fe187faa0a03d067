"""Identifies the client of each request, because clients of several users may share a connection.

A client shows its credential in the request itself:

- to a master: its name and a signature, or a token as text
- to a broker: a token or a signature as text, or a token as a number. The number is valid for one
  client id. Consumers in Java show the number alone.
- Some requests have no credential: consumers in Java do not sign when they register, and requests
  for messages have no field for a credential.

So if a consumer registers at the master without a credential, the gateway sends it a synthetic
success. In the reply to the consumer's heartbeat the gateway asks it to sign, and from then on the
consumer is authenticated. The master has not seen the first registration, so it makes the consumer
register again, and this registration is forwarded.

A consumer may request the messages of a partition on a connection on which it has registered for
this partition at the broker, or has reported the partition in a heartbeat. If a consumer connects
anew, it does not register again, so it must wait for its next heartbeat.

If the connection itself authenticates the client (by a certificate, or as anonymous), requests need
no credential.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from gateway.wire.contract import Credential, Denial, Principal, Refusal
from gateway.wire.services import NUMBER_SHOWN, Services, Tokens
from gateway.wire.slices import Slices
from gateway.wire.subject import Subject
from gateway.wire.tubemq import methods
from gateway.wire.tubemq.addresses import topic_of
from gateway.wire.tubemq.context import Client
from gateway.wire.tubemq.slices import changed

SIGNATURE = "signature"
"""The method of `identity` that verifies requests."""

BELIEVED = 60.0
"""Seconds for which a credential is not verified again: each message of a producer has it."""

MOST_BELIEVED = 16
"""The most verified credentials that are kept for one connection."""

KEPT_SIZE = 4_000
"""Bytes of the budget that each kept consumer, and each registration for a partition, takes: names
of a client and a group have up to 1024 characters each."""

LONGEST_PROOF = 4096
"""Characters of a credential that are read. Those of real clients have 200."""

Registration = tuple[str, str, str, int]
"""A registration at a broker: client, group, topic, partition."""


class Asking(NamedTuple):
    """The client of a request. `credential`: the credential that it has shown, if the gateway gives
    it tokens in return; else None."""

    subject: Subject
    credential: Credential | None = None


class Callers:
    """The clients of one connection. `has_proven`: one of them has shown a valid credential."""

    __slots__ = ("_believed", "_client", "_consumers", "_registrations", "_services", "has_proven")

    def __init__(self, services: Services, client: Client) -> None:
        self._services = services
        self._client = client
        self._believed: dict[bytes, tuple[Subject, float]] = {}
        self._consumers: dict[str, Credential] = {}  # by the ids of clients
        self._registrations: dict[Registration, Subject] = {}
        self.has_proven = False

    def find(self, number: int, message: Any, now: float) -> Asking | Denial | None:
        """Return the client of a request; a denial if the request's credential is wrong; None if
        the request has no credential, or no registration if it needs one. `number`: the number of
        the method that the client calls."""
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
        """Return new tokens, to be added to the master's reply to a client, and remember them; None
        if this client gets no tokens. `client`: the client id."""
        if asking.credential is None:
            return None
        tokens = self._services.tokens(asking.credential, client)
        if tokens is not None and (client in self._consumers or self._keeps()):
            self._consumers[client] = Credential(SIGNATURE, tokens.text.encode())
        return tokens

    def note(self, number: int, message: Any, subject: Subject) -> Slices[Denial | None]:
        """Remember the partitions for which a consumer registers, or which it reports in a
        heartbeat. Return a denial if no memory is left for another registration; else None.
        `number`: the number of the method. Raises `PeerError` if a partition is malformed."""
        if number == methods.REGISTER_PARTITION:
            return self._registered(message, subject)
        if number == methods.BEAT_PARTITIONS:
            client, group = message.clientId, message.groupName

            def keep(text: str) -> None:  # whether it is true, the broker knows
                self._add((client, group, *topic_of(text)), subject)

            yield from changed(list(message.partitionInfo), keep)
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
        principal = self._services.authenticate(
            Credential(SIGNATURE, shown), self._client.subject.host or ""
        )
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
    """Return the registration (client, group, topic, partition) that a message names."""
    return message.clientId, message.groupName, message.topicName, message.partitionId


def has_proof(message: Any) -> bool:
    """Return whether messages of this kind have a field for a credential."""
    return "authInfo" in message.DESCRIPTOR.fields_by_name


def is_signed(message: Any) -> bool:
    """Return whether a request has a signature, or a text that a broker would read as one."""
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
    return text[:LONGEST_PROOF].lstrip("\0").encode()
