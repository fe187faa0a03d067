"""Checks one master of TubeMQ: asks it whether it is the active one, and where brokers are.
`gateway.doctor.checks` documents the functions that each protocol has."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import chain

from gateway import protocols
from gateway.doctor import asking
from gateway.doctor.asking import TimedAnswer, judge_tls, name_address, spoken_of
from gateway.doctor.checks import Examined, Plan, Spoken
from gateway.doctor.endpoints import in_ranges
from gateway.doctor.finding import Finding, fail, ok, warn
from gateway.doctor.insecure import Insecure, judge_insecure
from gateway.doctor.reach import Network, Unreached, judge_unreached, run_all
from gateway.doctor.secured import Secure
from gateway.doctor.strangers import Stranger
from gateway.doctor.tubemq.hello import SPOKEN, Master, question
from gateway.wire.address import Address
from gateway.wire.tubemq.asking import Role
from gateway.wire.tubemq.plugin import PLUGIN

ADVERTISED_BY = "brokerIp and brokerPort in the master's configuration of a broker"
"""See `checks.Checks`."""


async def identify(network: Network, address: Address, secure: Secure | None) -> Spoken | None:
    """Return which protocol the peer at an IP address speaks; see `checks.Checks`."""
    return spoken_of((await _ask(network, secure, address)).answer, SPOKEN)


async def examine_broker(plan: Plan, broker: Address, addresses: Sequence[Address]) -> Examined:
    """Check one master of TubeMQ at each of its IP addresses; see `checks.Checks`."""
    secure = plan.secure(broker)
    timed = await run_all([partial(_ask, plan.network, secure, address) for address in addresses])
    answered = list(zip(addresses, timed, strict=True))
    connected = [_connected(plan, broker, address, outcome) for address, outcome in answered]
    agreed = chain.from_iterable(judge_tls(broker, at, outcome.agreed) for at, outcome in answered)
    brokers = _first_brokers(outcome.answer for outcome in timed)
    if brokers is None:
        return Examined(connected, tuple(agreed))
    finding = judge_brokers(f"brokers, as {broker} tells", brokers)
    return Examined(connected, (*agreed, finding), set(brokers.values()), frozenset(brokers))


async def _ask(network: Network, secure: Secure | None, address: Address) -> TimedAnswer[Master]:
    plain = question(tls=False)
    return await asking.ask(network, address, question(tls=secure is not None), plain, secure)


def _connected(
    plan: Plan, broker: Address, address: Address, timed: TimedAnswer[Master]
) -> Finding:
    check = f"master {name_address(broker, address)}"
    if isinstance(timed.answer, Insecure):
        return judge_insecure(check, timed.answer, plan.trust(broker), time.time())
    return judge_master(check, broker, timed.answer, timed.seconds)


def judge_master(
    check: str, broker: Address, answer: Master | Stranger | Unreached, seconds: float
) -> Finding:
    """Return the finding about one address of a master: a master responds there, or why none does.
    `broker`: the master, as the configuration names it. `seconds`: how long it took to connect."""
    if isinstance(answer, Unreached):
        return judge_unreached(check, broker, answer.code)
    if isinstance(answer, Stranger):
        tls = answer is Stranger.TLS
        url = protocols.url_of(PLUGIN.name, [broker._replace(tls=tls)])
        usual = f"Name the port of a master, usually {8716 if tls else 8715}: brokers: {url}"
        return fail(check, f"{answer.words(SPOKEN)}: not a master", usual)
    if answer.role is Role.NO_MASTER:
        return fail(
            check,
            f"speaks {SPOKEN}, and is no master",
            "It may be a broker: name the port of a master, usually 8715. Clients reach brokers by "
            "the ports in `advertise`.",
        )
    state = "active" if answer.role is Role.ACTIVE else "standing by"
    return ok(check, f"speaks {SPOKEN}, {state}; connected in {seconds * 1000:.0f} ms")


def judge_brokers(check: str, brokers: Mapping[int, Address]) -> Finding:
    """Return the finding about the brokers that the active master lists."""
    if not brokers:
        return warn(
            check,
            "the active master names no broker",
            "Clients would hear the same: see that brokers are online in the master's console.",
        )
    number = "1 broker" if len(brokers) == 1 else f"{len(brokers)} brokers"
    return ok(check, f"{number}, with the ids {in_ranges(sorted(brokers))}")


def _first_brokers(answers: Iterable[object]) -> Mapping[int, Address] | None:
    """Return the brokers that the active master lists; None if no address is that of an active
    master."""
    brokers = [
        answer.brokers
        for answer in answers
        if isinstance(answer, Master) and answer.role is Role.ACTIVE
    ]
    return brokers[0] if brokers else None
