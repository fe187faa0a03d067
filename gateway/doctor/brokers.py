"""The brokers of one cluster: names, connections, CONNECT, lookups, and where those lead."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain

from gateway.brokers.names import TemplateNames
from gateway.config import model
from gateway.doctor import advertised, hello, lookups, targets, verdicts
from gateway.doctor.finding import Finding, Section, State, fail, ok, skip, warn
from gateway.doctor.hello import Probe, Welcome
from gateway.doctor.reach import Network, Resolved, is_literal, together
from gateway.doctor.verdicts import Answers
from gateway.identity.credential import OwnCredential
from gateway.wire.address import Address

SLOW_NAME = 1.0
"""Seconds. The C library asks a name server that is silent again after 5; half of a client's
patience would go there."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be tried in one cluster.

    `modes`: of the listeners that lead there. `own`: our credential towards these brokers, None
    where it cannot be used. `role`: what it says of itself. `names`: of the template, if any.
    """

    name: str
    cluster: model.Cluster
    modes: Collection[str]
    own: OwnCredential | None
    role: str | None
    names: TemplateNames | None
    network: Network

    @property
    def passes_through(self) -> bool:
        """Whether brokers see clients' own credentials."""
        return "pass-through" in self.modes or not self.modes

    @property
    def verifying(self) -> bool:
        """Whether brokers see ours."""
        return bool(set(self.modes) - {"pass-through"})

    @property
    def forwards(self) -> bool:
        """Whether brokers see ours and, always, a client's."""
        return self.verifying and "verify" not in self.modes


async def examine(plan: Plan) -> Section:
    """Try everything in a cluster, all brokers at once."""
    brokers = plan.cluster.brokers
    examined = await together([partial(_examine_broker, plan, broker) for broker in brokers])
    findings = list(chain.from_iterable(found.findings for found in examined))
    named = sorted(set().union(*(found.led.addresses for found in examined)))
    findings += await advertised.examine(plan.network, plan.cluster, plan.names, named)
    if not plan.modes:
        findings.append(warn("listeners", "none leads there", "Give it one, or take it out."))
    return Section(f"cluster {plan.name}", tuple(findings))


# -- one broker ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Examined:
    findings: tuple[Finding, ...]
    led: lookups.Led


@dataclass(frozen=True, slots=True)
class _Heard:
    """What one IP address of a broker says."""

    address: Address
    answers: Answers
    seconds: float


async def _examine_broker(plan: Plan, broker: Address) -> _Examined:
    resolved = await plan.network.resolve(broker.host)
    findings = _named(broker, resolved)
    addresses = [Address(ip, broker.port) for ip in resolved.ips]
    heard = await together([partial(_hear, plan, address) for address in addresses])
    rows = [_connected(broker, it) for it in heard]
    findings += _lessened(rows)
    findings += chain.from_iterable(_let_in(plan, broker, it) for it in heard)
    led, found = await _look_up(plan, broker, heard)
    return _Examined((*findings, *found), led)


def _named(broker: Address, resolved: Resolved) -> list[Finding]:
    what = f"name {broker.host}"
    if is_literal(broker.host):
        return []
    if not resolved.ips:
        return [
            fail(
                what,
                f"does not resolve: {resolved.error}",
                "See that the name is right, and that this machine asks a name server that "
                f"knows it: getent hosts {broker.host}",
            )
        ]
    told = ", ".join(resolved.ips)
    if resolved.others:
        told += f" and {resolved.others} more, which are not tried"
    if resolved.seconds > SLOW_NAME:
        return [
            warn(
                what,
                f"{told}, after {resolved.seconds:.1f} s",
                "New connections wait for it: see the name servers in /etc/resolv.conf.",
            )
        ]
    return [ok(what, f"{told} in {resolved.seconds * 1000:.0f} ms")]


async def _hear(plan: Plan, address: Address) -> _Heard:
    """Ask in all ways that make a difference; where nobody speaks Pulsar, once."""
    own, network = plan.own, plan.network
    first = await network.greet(address, hello.anonymous())
    answers = Answers(first.answer)
    if own is not None and plan.verifying and isinstance(first.answer, Welcome | hello.No):
        proxied = await network.greet(address, hello.speaking_for(own))
        answers = replace(answers, proxied=proxied.answer)
        if own.current().method != "none":
            alone = await network.greet(address, hello.alone(own))
            answers = replace(answers, alone=alone.answer)
    return _Heard(address, answers, first.seconds)


def _connected(broker: Address, heard: _Heard) -> Finding:
    what = f"broker {_placed(broker, heard.address)}"
    return verdicts.broker(what, heard.address, heard.answers.best, heard.seconds)


def _placed(broker: Address, address: Address) -> str:
    return str(broker) if broker == address else f"{broker} ({address.host})"


def _lessened(rows: list[Finding]) -> list[Finding]:
    """One address of a name that does not work is a warning where another one does."""
    if all(row.state is State.FAIL for row in rows):
        return rows
    return [replace(row, state=State.WARN) if row.state is State.FAIL else row for row in rows]


def _let_in(plan: Plan, broker: Address, heard: _Heard) -> list[Finding]:
    at = _placed(broker, heard.address)
    found: list[Finding | None] = []
    if plan.passes_through:
        found.append(verdicts.passed_through(f"clients at {at}", heard.answers))
    if plan.verifying and plan.own is not None:
        what = f"gateway at {at}"
        found.append(verdicts.verified(what, heard.answers, plan.role, forward=plan.forwards))
    return [it for it in found if it is not None]


# -- lookups ---------------------------------------------------------------------------------


async def _look_up(
    plan: Plan, broker: Address, heard: Sequence[_Heard]
) -> tuple[lookups.Led, list[Finding]]:
    """Look topics up at the first address where that can be done.

    A gateway that stands in a broker's place answers with names that only it can open.
    """
    if plan.cluster.brokers_are == "gateways":
        return lookups.Led(), []
    what = f"lookups at {broker}"
    allowed = targets.allow_list(plan.cluster)
    for it in heard:
        caller = _caller(plan, it.answers)
        if caller is not None:
            search = lookups.Search(plan.network, caller, allowed, broker, it.address.host)
            led = await search.run()
            return led, [lookups.verdict(what, led, plan.role if plan.verifying else None)]
    if not any(isinstance(it.answers.best, Welcome | hello.No) for it in heard):
        return lookups.Led(), []
    return lookups.Led(), [_untried(plan, what)]


def _untried(plan: Plan, what: str) -> Finding:
    if plan.own is None:
        return skip(what, "not tried: the gateway's own token cannot be read, see above")
    if plan.verifying and not plan.forwards:
        return skip(what, "not tried: the gateway was not let in")
    return skip(
        what,
        "not tried: that needs a credential that only clients have",
        "Should clients be refused as target_refused: the addresses that brokers advertise have "
        "to be in `targets`.",
    )


def _caller(plan: Plan, answers: Answers) -> Probe | None:
    if isinstance(answers.proxied, Welcome) and plan.own is not None:
        return hello.speaking_for(plan.own)
    return hello.anonymous() if isinstance(answers.anonymous, Welcome) else None
