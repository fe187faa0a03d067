"""Checks the brokers of one cluster: names, connections, CONNECT, lookups, advertised addresses."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain

from gateway.brokers.names import TemplateNames
from gateway.config import model
from gateway.doctor import advertised, hello, lookups, targets, verdicts
from gateway.doctor.finding import Finding, Section, Status, fail, ok, skip, warn
from gateway.doctor.hello import Accepted, Probe
from gateway.doctor.reach import Network, Resolved, is_literal, run_all
from gateway.doctor.verdicts import BrokerAnswers
from gateway.identity.credential import OwnCredential
from gateway.wire.address import Address

SLOW_NAME = 1.0
"""Seconds. The C library asks a silent name server again after 5 s, half of a client's patience."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The checks of one cluster.

    `modes`: identity modes of its listeners. `own`: the gateway's credential for these brokers,
    None if unusable. `role`: the role that it states. `names`: of the template, if any.
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
        """Return whether brokers see clients' own credentials."""
        return "pass-through" in self.modes or not self.modes

    @property
    def verifying(self) -> bool:
        """Return whether brokers see the gateway's credential."""
        return bool(set(self.modes) - {"pass-through"})

    @property
    def forwards(self) -> bool:
        """Return whether brokers always see both the gateway's credential and a client's."""
        return self.verifying and "verify" not in self.modes


async def examine(plan: Plan) -> Section:
    """Check everything in a cluster, all brokers at once."""
    brokers = plan.cluster.brokers
    examined = await run_all([partial(_examine_broker, plan, broker) for broker in brokers])
    findings = list(chain.from_iterable(found.findings for found in examined))
    named = sorted(set().union(*(found.results.addresses for found in examined)))
    findings += await advertised.examine(plan.network, plan.cluster, plan.names, named)
    if not plan.modes:
        findings.append(warn("listeners", "none leads there", "Give it one, or take it out."))
    return Section(f"cluster {plan.name}", tuple(findings))


# -- one broker ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _BrokerResult:
    findings: tuple[Finding, ...]
    results: lookups.LookupResults


@dataclass(frozen=True, slots=True)
class _AddressResult:
    """The answers of one IP address of a broker."""

    address: Address
    answers: BrokerAnswers
    seconds: float


async def _examine_broker(plan: Plan, broker: Address) -> _BrokerResult:
    resolved = await plan.network.resolve(broker.host)
    findings = _named(broker, resolved)
    addresses = [Address(ip, broker.port) for ip in resolved.ips]
    answered = await run_all([partial(_ask_address, plan, address) for address in addresses])
    rows = [_connected(broker, it) for it in answered]
    findings += _downgrade_failures(rows)
    findings += chain.from_iterable(_check_access(plan, broker, it) for it in answered)
    results, found = await _look_up(plan, broker, answered)
    return _BrokerResult((*findings, *found), results)


def _named(broker: Address, resolved: Resolved) -> list[Finding]:
    check = f"name {broker.host}"
    if is_literal(broker.host):
        return []
    if not resolved.ips:
        return [
            fail(
                check,
                f"does not resolve: {resolved.error}",
                "See that the name is right, and that this machine asks a name server that "
                f"knows it: getent hosts {broker.host}",
            )
        ]
    detail = ", ".join(resolved.ips)
    if resolved.others:
        detail += f" and {resolved.others} more, which are not tried"
    if resolved.seconds > SLOW_NAME:
        return [
            warn(
                check,
                f"{detail}, after {resolved.seconds:.1f} s",
                "New connections wait for it: see the name servers in /etc/resolv.conf.",
            )
        ]
    return [ok(check, f"{detail} in {resolved.seconds * 1000:.0f} ms")]


async def _ask_address(plan: Plan, address: Address) -> _AddressResult:
    """Send each kind of CONNECT that matters; only one if the peer does not speak Pulsar."""
    own, network = plan.own, plan.network
    first = await network.greet(address, hello.anonymous())
    answers = BrokerAnswers(first.answer)
    if own is not None and plan.verifying and isinstance(first.answer, Accepted | hello.Rejected):
        proxied = await network.greet(address, hello.speaking_for(own))
        answers = replace(answers, proxied=proxied.answer)
        if own.current().method != "none":
            alone = await network.greet(address, hello.alone(own))
            answers = replace(answers, alone=alone.answer)
    return _AddressResult(address, answers, first.seconds)


def _connected(broker: Address, answered: _AddressResult) -> Finding:
    check = f"broker {_name_address(broker, answered.address)}"
    return verdicts.judge_broker(check, answered.address, answered.answers.best, answered.seconds)


def _name_address(broker: Address, address: Address) -> str:
    return str(broker) if broker == address else f"{broker} ({address.host})"


def _downgrade_failures(rows: list[Finding]) -> list[Finding]:
    """Turn failures of one address into warnings if another address of the name works."""
    if all(row.status is Status.FAIL for row in rows):
        return rows
    return [replace(row, status=Status.WARN) if row.status is Status.FAIL else row for row in rows]


def _check_access(plan: Plan, broker: Address, answered: _AddressResult) -> list[Finding]:
    at = _name_address(broker, answered.address)
    found: list[Finding | None] = []
    if plan.passes_through:
        found.append(verdicts.judge_pass_through(f"clients at {at}", answered.answers))
    if plan.verifying and plan.own is not None:
        check = f"gateway at {at}"
        found.append(
            verdicts.judge_verified(check, answered.answers, plan.role, forward=plan.forwards)
        )
    return [it for it in found if it is not None]


# -- lookups ---------------------------------------------------------------------------------


async def _look_up(
    plan: Plan, broker: Address, answered: Sequence[_AddressResult]
) -> tuple[lookups.LookupResults, list[Finding]]:
    """Look topics up at the first address that allows it.

    Gateways in the place of brokers are skipped: they answer with names that only they can open.
    """
    if plan.cluster.brokers_are == "gateways":
        return lookups.LookupResults(), []
    check = f"lookups at {broker}"
    allowed = targets.allow_list(plan.cluster)
    for it in answered:
        probe = _probe(plan, it.answers)
        if probe is not None:
            search = lookups.TopicLookups(plan.network, probe, allowed, broker, it.address.host)
            results = await search.run()
            return results, [lookups.judge(check, results, plan.role if plan.verifying else None)]
    if not any(isinstance(it.answers.best, Accepted | hello.Rejected) for it in answered):
        return lookups.LookupResults(), []
    return lookups.LookupResults(), [_skip_lookups(plan, check)]


def _skip_lookups(plan: Plan, check: str) -> Finding:
    if plan.own is None:
        return skip(check, "not tried: the gateway's own token cannot be read, see above")
    if plan.verifying and not plan.forwards:
        return skip(check, "not tried: the gateway was not let in")
    return skip(
        check,
        "not tried: that needs a credential that only clients have",
        "Should clients be refused as target_refused: the addresses that brokers advertise have "
        "to be in `targets`.",
    )


def _probe(plan: Plan, answers: BrokerAnswers) -> Probe | None:
    if isinstance(answers.proxied, Accepted) and plan.own is not None:
        return hello.speaking_for(plan.own)
    return hello.anonymous() if isinstance(answers.anonymous, Accepted) else None
