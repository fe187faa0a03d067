"""Checks one Pulsar broker: its response to CONNECT, the access that it gives, and lookups; see
`gateway.doctor.checks`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain

from gateway.doctor import targets
from gateway.doctor.asking import TimedAnswer, judge_tls, name_address, spoken_of
from gateway.doctor.checks import Examined, Plan, Spoken
from gateway.doctor.finding import Finding, skip
from gateway.doctor.insecure import Agreed, Insecure, judge_insecure
from gateway.doctor.pulsar import hello, lookups, verdicts
from gateway.doctor.pulsar.asking import ask
from gateway.doctor.pulsar.hello import SPOKEN, Accepted, Probe, Rejected
from gateway.doctor.pulsar.verdicts import BrokerAnswers
from gateway.doctor.reach import Network, run_all
from gateway.doctor.secured import Secure
from gateway.wire.address import Address

ADVERTISED_BY = "advertisedAddress in broker.conf"
"""See `checks.Checks`."""


@dataclass(frozen=True, slots=True)
class _AddressResult:
    """The outcomes at one IP address of a broker."""

    address: Address
    answers: BrokerAnswers
    seconds: float
    agreed: Agreed | None


async def identify(network: Network, address: Address, secure: Secure | None) -> Spoken | None:
    """Return which protocol the peer at an IP address speaks; see `checks.Checks`."""
    timed = await ask(network, address, hello.anonymous(), secure)
    return spoken_of(timed.answer, SPOKEN)


async def examine_broker(plan: Plan, broker: Address, addresses: Sequence[Address]) -> Examined:
    """Check one Pulsar broker at each of its IP addresses; see `checks.Checks`."""
    answered = await run_all(
        [partial(_ask_address, plan, broker, address) for address in addresses]
    )
    connected = [_connected(plan, broker, result) for result in answered]
    agreed = [judge_tls(broker, result.address, result.agreed) for result in answered]
    access = chain.from_iterable(_check_access(plan, broker, result) for result in answered)
    results, findings = await _look_up(plan, broker, answered)
    return Examined(
        connected, (*chain.from_iterable(agreed), *access, *findings), results.addresses
    )


async def _ask_address(plan: Plan, broker: Address, address: Address) -> _AddressResult:
    """Send each kind of CONNECT that matters; only one if the peer does not speak Pulsar."""
    own, secure = plan.own, plan.secure(broker)

    async def send(probe: Probe) -> TimedAnswer[Accepted | Rejected]:
        return await ask(plan.network, address, probe, secure)

    first = await send(hello.anonymous())
    answers = BrokerAnswers(first.answer)
    if own is not None and plan.verifying and isinstance(first.answer, Accepted | Rejected):
        proxied = await send(hello.speaking_for(own))
        answers = replace(answers, proxied=proxied.answer)
        if own.current().method != "none":
            alone = await send(hello.alone(own))
            answers = replace(answers, alone=alone.answer)
    return _AddressResult(address, answers, first.seconds, first.agreed)


def _connected(plan: Plan, broker: Address, answered: _AddressResult) -> Finding:
    check = f"broker {name_address(broker, answered.address)}"
    best = answered.answers.best
    if isinstance(best, Insecure):
        return judge_insecure(check, best, plan.trust(broker), time.time())
    return verdicts.judge_broker(check, broker, best, answered.seconds)


def _check_access(plan: Plan, broker: Address, answered: _AddressResult) -> list[Finding]:
    at = name_address(broker, answered.address)
    findings: list[Finding | None] = []
    if plan.passes_through:
        findings.append(verdicts.judge_pass_through(f"clients at {at}", answered.answers))
    if plan.verifying and plan.own is not None:
        check = f"gateway at {at}"
        findings.append(
            verdicts.judge_verified(check, answered.answers, plan.role, forward=plan.forwards)
        )
    return [finding for finding in findings if finding is not None]


# -- lookups ---------------------------------------------------------------------------------


async def _look_up(
    plan: Plan, broker: Address, answered: Sequence[_AddressResult]
) -> tuple[lookups.LookupResults, list[Finding]]:
    """Look topics up at the first address that allows it.

    Gateways in the place of brokers are skipped: they respond with names that only they can open.
    """
    if plan.cluster.brokers_are == "gateways":
        return lookups.LookupResults(), []
    check = f"lookups at {broker}"
    allowed = targets.allow_list(plan.cluster)
    for result in answered:
        probe = _probe(plan, result.answers)
        if probe is not None:
            search = lookups.TopicLookups(plan, probe, allowed, broker, result.address.host)
            results = await search.run()
            role = plan.role if plan.verifying else None
            return results, [lookups.judge(check, results, role, tls=broker.tls)]
    if not any(isinstance(result.answers.best, Accepted | Rejected) for result in answered):
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
        return hello.speaking_for(plan.own, tls=plan.cluster.has_tls)
    tls = plan.cluster.has_tls
    return hello.anonymous(tls=tls) if isinstance(answers.anonymous, Accepted) else None
