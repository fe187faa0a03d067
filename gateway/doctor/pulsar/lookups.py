"""Checks to which brokers lookups direct clients: looks some topics up as the gateway does, and
follows redirects.

A lookup creates no topic. Like a client's lookup, it may make a broker load the bundle of the
topic.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf

import trio

from gateway.brokers.targets import REFUSED, TargetList
from gateway.doctor import secured
from gateway.doctor.checks import Plan
from gateway.doctor.finding import Finding, fail, ok, skip, warn
from gateway.doctor.insecure import Insecure
from gateway.doctor.pulsar.asking import LARGEST_ANSWER
from gateway.doctor.pulsar.hello import DOCTOR, Probe, Rejected, frame_length, printable
from gateway.doctor.pulsar.verdicts import UNAUTHENTICATED, UNAUTHORIZED, describe
from gateway.doctor.reach import Unreached
from gateway.doctor.targets import allowed_ips
from gateway.errors import PeerError
from gateway.front.conversation import Conversation
from gateway.front.leg import Leg
from gateway.wire.address import Address
from gateway.wire.contract import Denial, Dialled, Refusal
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand, CommandLookupTopicResponse
from gateway.wire.pulsar.chase import Chase, Hop
from gateway.wire.pulsar.commands import decode, encode
from gateway.wire.pulsar.urls import choose, parse

NAMESPACE = "public/default"

TOPICS = tuple(f"persistent://{NAMESPACE}/{DOCTOR}-{number}" for number in range(4))
"""One per quarter of the hash range: a new namespace has four bundles, on up to four brokers."""

_TOO_SLOW = Denial(Refusal.TIMEOUT, "no answer in time")
_NOT_REACHED = Denial(Refusal.NOT_READY, "a broker cannot be connected to")
_NO_TLS = Denial(Refusal.NOT_READY, "the TLS handshake with a broker fails")
_NOT_KNOWN = Denial(Refusal.NOT_READY, "a broker's name does not resolve here")
_NOWHERE = Denial(Refusal.NOT_READY, "no broker is named in the answer")


@dataclass(slots=True)
class LookupResults:
    """The results of the lookups that begin at one broker.

    `owners`: the brokers that serve the topics. `hops`: the brokers to which redirects lead.
    `forbidden`: those of the `hops` that the setting `targets` does not allow. `tls_only`: the URLs
    of brokers that only speak TLS, if the gateway uses no TLS to brokers. `refusals`: the lookups
    that failed.
    """

    owners: set[Address] = field(default_factory=set)
    hops: set[Address] = field(default_factory=set)
    forbidden: set[Address] = field(default_factory=set)
    tls_only: set[str] = field(default_factory=set)
    refusals: list[Rejected | Denial] = field(default_factory=list)

    @property
    def addresses(self) -> set[Address]:
        """Return the addresses of all brokers that responses have named."""
        return self.owners | self.hops


class TopicLookups:
    """The lookups that begin at one broker. `named`: the broker's address in the configuration.
    `ip`: the IP address at which it is dialled."""

    def __init__(
        self, plan: Plan, probe: Probe, targets: TargetList, named: Address, ip: str
    ) -> None:
        self._plan = plan
        self._network = plan.network
        self._probe = probe
        self._targets = targets
        self._named = named
        self._ip = ip
        self._legs: dict[Address, Leg] = {}
        self._results = LookupResults()

    async def run(self) -> LookupResults:
        """Look up `TOPICS` one after the other, and return the results. All lookups together take
        at most `Network.timeout` seconds."""
        try:
            with trio.move_on_after(self._network.timeout) as scope:
                for topic in TOPICS:
                    self._note(await self._look_up(topic))
        finally:
            for leg in self._legs.values():
                leg.close()
        if scope.cancelled_caught:
            self._note(_TOO_SLOW)
        return self._results

    async def _look_up(self, topic: str) -> bytes | Denial:
        lookup = BaseCommand(type=BaseCommand.LOOKUP)
        lookup.lookupTopic.topic = topic
        lookup.lookupTopic.request_id = 1
        chase = Chase(
            self._probe.listener,
            self._probe.client,
            1,
            encode(lookup),
            Hop(self._named, authoritative=False),
        )
        try:
            conversation = Conversation(inf, self._open_leg, retire=_keep)
            return await conversation.run(chase.converse())
        except PeerError as violation:
            return Denial(Refusal.UNSUPPORTED, str(violation))

    async def _open_leg(self, target: Address | None) -> tuple[Leg, Dialled] | Denial:
        """Return a connection to the first broker, or to a broker that a response named."""
        assert target is not None
        if target != self._named:
            self._results.hops.add(target)
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
        failed, secure = _NOT_REACHED, self._plan.secure(target)
        for ip in ips:
            stream = await secured.connect(self._network, Address(ip, target.port), secure)
            if isinstance(stream, Insecure):
                failed = _NO_TLS
            elif not isinstance(stream, Unreached):
                return Leg(stream, frame_length, LARGEST_ANSWER)
        return failed

    async def _ips(self, target: Address) -> tuple[str, ...] | Denial:
        """Return the IP addresses to dial; the first broker's is known."""
        if target == self._named:
            return (self._ip,)
        resolved = await self._network.resolve(target.host)
        if not resolved.ips:
            return _NOT_KNOWN
        ips = allowed_ips(self._targets, target, resolved.ips)
        if not ips:
            self._results.forbidden.add(target)
        return ips or REFUSED

    def _note(self, outcome: bytes | Denial) -> None:
        if isinstance(outcome, Denial):
            self._results.refusals.append(outcome)
            return
        answer = decode(outcome).lookupTopicResponse
        if answer.response != CommandLookupTopicResponse.Connect:
            code = answer.error if answer.HasField("error") else None
            self._results.refusals.append(Rejected(code, printable(answer.message)))
            return
        self._note_owner(answer)

    def _note_owner(self, answer: CommandLookupTopicResponse) -> None:
        tls = self._probe.listener.brokers_tls
        owner = parse(choose(answer.brokerServiceUrl, answer.brokerServiceUrlTls, tls=tls))
        if owner is not None and owner.tls and not tls:
            self._results.tls_only.add(printable(answer.brokerServiceUrlTls))
        elif owner is not None:
            self._results.owners.add(owner)
        else:
            self._results.refusals.append(_NOWHERE)


# -- findings --------------------------------------------------------------------------------


def judge(
    check: str, results: LookupResults, role: str | None = None, *, tls: bool = False
) -> Finding:
    """Return the finding about the lookups at one broker. `role`: the gateway's role at this
    broker; None if it has none. `tls`: the broker is dialled with TLS."""
    if results.tls_only:
        return fail(
            check,
            f"lead to {_listed(results.tls_only)}: TLS, and `brokers` name no URL with TLS",
            "Name the brokers by such URLs, and who signs for them:",
            "brokers: pulsar+ssl://HOST:6651\ntls: {ca_file: secrets/brokers-ca.crt}",
        )
    if results.refusals:
        return _refused(check, results.refusals[0], results, role)
    way = ", by redirects" if results.hops else ""
    plain = {owner for owner in results.owners if not owner.tls}
    if tls and plain:
        return warn(
            check,
            f"lead to {_listed(plain)}{way}, without TLS, and the gateway goes there without",
            "Let these brokers have a port with TLS (brokerServicePortTls in broker.conf).",
        )
    return ok(check, f"lead to {_listed(results.owners)}{way}")


def _refused(
    check: str, why: Rejected | Denial, results: LookupResults, role: str | None
) -> Finding:
    if why == REFUSED:
        return fail(
            check,
            f"are redirected to {_listed(results.forbidden)}, where the gateway may not go",
            "See `advertised` below.",
        )
    if _is_about_rights(why):
        return _without_rights(check, role)
    failed = f"{len(results.refusals)} of {len(TOPICS)} lookups"
    words = printable(why.text) if isinstance(why, Denial) else describe(why)
    return warn(
        check,
        f"{failed} of topics in {NAMESPACE} fail: {words}",
        f"If {NAMESPACE} is there, the broker's log has the reason.",
    )


def _without_rights(check: str, role: str | None) -> Finding:
    roles = [DOCTOR, *([role] if role else [])]
    return skip(
        check,
        f'not tried: "{DOCTOR}" has no rights in {NAMESPACE}, or the gateway has none',
        "Brokers tell nobody else where topics are. To have it tried:",
        "\n".join(
            f"pulsar-admin namespaces grant-permission {NAMESPACE} --role {name} --actions consume"
            for name in roles
        ),
    )


def _is_about_rights(why: Rejected | Denial) -> bool:
    if isinstance(why, Denial):
        return why.refusal in (Refusal.UNAUTHENTICATED, Refusal.UNAUTHORIZED)
    return why.code in (UNAUTHENTICATED, UNAUTHORIZED)


def _listed(things: set[Address] | set[str]) -> str:
    return ", ".join(sorted(map(str, things)))


def _keep(_leg: Leg) -> None:
    """Leave a connection open for later lookups."""
