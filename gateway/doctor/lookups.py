"""Where brokers lead clients: a few topics looked up as the gateway does it, redirects followed.

A lookup creates no topic. It may make a broker load the part of the namespace that the topic would
be in, as any client's does.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf

import trio

from gateway.brokers.targets import REFUSED, TargetList
from gateway.doctor.finding import Finding, fail, ok, skip, warn
from gateway.doctor.hello import DOCTOR, No, Probe, Unreached, frame_length, plain
from gateway.doctor.reach import LARGEST_ANSWER, Network
from gateway.doctor.targets import allowed
from gateway.doctor.verdicts import UNAUTHENTICATED, UNAUTHORIZED, said
from gateway.errors import PeerError
from gateway.front.conversation import Conversation
from gateway.front.leg import Leg
from gateway.wire.address import Address
from gateway.wire.contract import Denial, Dialled, Refusal
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand, CommandLookupTopicResponse
from gateway.wire.pulsar.chase import Chase, Hop
from gateway.wire.pulsar.commands import decode, encode
from gateway.wire.pulsar.urls import parse

NAMESPACE = "public/default"

TOPICS = tuple(f"persistent://{NAMESPACE}/{DOCTOR}-{number}" for number in range(4))
"""One in each quarter of the hash range: a namespace is made with four bundles, and each may be at
another broker."""

_TOO_SLOW = Denial(Refusal.TIMEOUT, "no answer in time")
_NOT_REACHED = Denial(Refusal.NOT_READY, "a broker cannot be connected to")
_NOT_KNOWN = Denial(Refusal.NOT_READY, "a broker's name does not resolve here")
_NOWHERE = Denial(Refusal.NOT_READY, "no broker is named in the answer")


@dataclass(slots=True)
class Led:
    """Where the lookups of one broker led: to brokers (`owners`), on the way to redirected ones
    (`hops`, of which `barred` are not allowed), to addresses for TLS alone, or to a no.
    """

    owners: set[Address] = field(default_factory=set)
    hops: set[Address] = field(default_factory=set)
    barred: set[Address] = field(default_factory=set)
    tls_only: set[str] = field(default_factory=set)
    refusals: list[No | Denial] = field(default_factory=list)

    @property
    def addresses(self) -> set[Address]:
        """All that brokers named."""
        return self.owners | self.hops


class Search:
    """The lookups that begin at one broker: `named` in the configuration, dialled at `ip`."""

    def __init__(
        self, network: Network, caller: Probe, targets: TargetList, named: Address, ip: str
    ) -> None:
        self._network = network
        self._caller = caller
        self._targets = targets
        self._named = named
        self._ip = ip
        self._legs: dict[Address, Leg] = {}
        self._led = Led()

    async def run(self) -> Led:
        """Look all topics up, one after the other, within the patience for one step."""
        try:
            with trio.move_on_after(self._network.patience) as scope:
                for topic in TOPICS:
                    self._note(await self._look_up(topic))
        finally:
            for leg in self._legs.values():
                leg.close()
        if scope.cancelled_caught:
            self._note(_TOO_SLOW)
        return self._led

    async def _look_up(self, topic: str) -> bytes | Denial:
        lookup = BaseCommand(type=BaseCommand.LOOKUP)
        lookup.lookupTopic.topic = topic
        lookup.lookupTopic.request_id = 1
        chase = Chase(
            self._caller.listener,
            self._caller.client,
            1,
            encode(lookup),
            Hop(self._named, authoritative=False),
        )
        try:
            conversation = Conversation(inf, self._reach, leave=_keep)
            return await conversation.run(chase.converse())
        except PeerError as violation:
            return Denial(Refusal.UNSUPPORTED, str(violation))

    async def _reach(self, target: Address | None) -> tuple[Leg, Dialled] | Denial:
        """A connection to the first broker, or to one that an answer named."""
        assert target is not None
        if target != self._named:
            self._led.hops.add(target)
        if target in self._legs:
            return self._legs[target], Dialled(target, fresh=False)
        leg = await self._dial(target)
        if isinstance(leg, Denial):
            return leg
        self._legs[target] = leg
        return leg, Dialled(target)

    async def _dial(self, target: Address) -> Leg | Denial:
        ips = await self._ips(target)
        if isinstance(ips, Denial):
            return ips
        for ip in ips:
            sock = await self._network.connect(Address(ip, target.port))
            if not isinstance(sock, Unreached):
                return Leg(sock, frame_length, LARGEST_ANSWER)
        return _NOT_REACHED

    async def _ips(self, target: Address) -> tuple[str, ...] | Denial:
        """Where to dial; the first broker was found already."""
        if target == self._named:
            return (self._ip,)
        resolved = await self._network.resolve(target.host)
        if not resolved.ips:
            return _NOT_KNOWN
        ips = allowed(self._targets, target, resolved.ips)
        if not ips:
            self._led.barred.add(target)
        return ips or REFUSED

    def _note(self, outcome: bytes | Denial) -> None:
        if isinstance(outcome, Denial):
            self._led.refusals.append(outcome)
            return
        answer = decode(outcome).lookupTopicResponse
        if answer.response != CommandLookupTopicResponse.Connect:
            code = answer.error if answer.HasField("error") else None
            self._led.refusals.append(No(code, plain(answer.message)))
            return
        self._note_owner(answer)

    def _note_owner(self, answer: CommandLookupTopicResponse) -> None:
        owner = parse(answer.brokerServiceUrl)
        if owner is not None:
            self._led.owners.add(owner)
        elif answer.brokerServiceUrlTls:
            self._led.tls_only.add(plain(answer.brokerServiceUrlTls))
        else:
            self._led.refusals.append(_NOWHERE)


# -- what it means ---------------------------------------------------------------------------


def verdict(what: str, led: Led, role: str | None = None) -> Finding:
    """What one broker's answers come to. `role`: of the gateway, where it has one there."""
    if led.tls_only:
        return fail(
            what,
            f"lead to {_listed(led.tls_only)}: TLS, which the gateway does not speak yet",
            "Let the brokers advertise a plain port too (brokerServicePort in broker.conf).",
        )
    if led.refusals:
        return _refused(what, led.refusals[0], led, role)
    way = ", by redirects" if led.hops else ""
    return ok(what, f"lead to {_listed(led.owners)}{way}")


def _refused(what: str, why: No | Denial, led: Led, role: str | None) -> Finding:
    if why == REFUSED:
        return fail(
            what,
            f"are redirected to {_listed(led.barred)}, where the gateway may not go",
            "See `advertised` below.",
        )
    if _is_about_rights(why):
        return _without_rights(what, role)
    words = plain(why.text) if isinstance(why, Denial) else said(why)
    return warn(
        what,
        f"{_tried(led)} of topics in {NAMESPACE} fail: {words}",
        f"If {NAMESPACE} is there, the broker's log has the reason.",
    )


def _without_rights(what: str, role: str | None) -> Finding:
    roles = [DOCTOR, *([role] if role else [])]
    return skip(
        what,
        f'not tried: "{DOCTOR}" has no rights in {NAMESPACE}, or the gateway has none',
        "Brokers tell nobody else where topics are. To have it tried:",
        "\n".join(
            f"pulsar-admin namespaces grant-permission {NAMESPACE} --role {it} --actions consume"
            for it in roles
        ),
    )


def _tried(led: Led) -> str:
    return f"{len(led.refusals)} of {len(TOPICS)} lookups"


def _is_about_rights(why: No | Denial) -> bool:
    if isinstance(why, Denial):
        return why.refusal in (Refusal.UNAUTHENTICATED, Refusal.UNAUTHORIZED)
    return why.code in (UNAUTHENTICATED, UNAUTHORIZED)


def _listed(things: set[Address] | set[str]) -> str:
    return ", ".join(sorted(map(str, things)))


def _keep(_leg: Leg) -> None:
    """Leave a connection open: later lookups go on with it."""
