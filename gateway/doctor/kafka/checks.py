"""Checks one Kafka broker: its API versions, whether it accepts the gateway's credential, and the
brokers that its metadata lists; see `gateway.doctor.checks`."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain

from gateway.assembly import shows_passwords
from gateway.doctor import asking
from gateway.doctor.asking import TimedAnswer, judge_tls, name_address, spoken_of
from gateway.doctor.checks import Examined, Plan, Spoken
from gateway.doctor.finding import Finding
from gateway.doctor.insecure import Insecure, judge_insecure
from gateway.doctor.kafka import verdicts
from gateway.doctor.kafka.hello import SPOKEN, Broker, Login, question
from gateway.doctor.reach import Network, run_all
from gateway.doctor.secured import Secure
from gateway.doctor.strangers import Stranger
from gateway.wire.address import Address
from gateway.wire.kafka.authenticating import MECHANISMS, Rejected
from gateway.wire.kafka.sasl.client import chosen
from gateway.wire.plugin import Mode

ADVERTISED_BY = "advertised.listeners in server.properties"
"""See `checks.Checks`."""


async def identify(network: Network, address: Address, secure: Secure | None) -> Spoken | None:
    """Return which protocol the peer at an IP address speaks; see `checks.Checks`."""
    return spoken_of((await _ask(network, secure, address, None)).answer, SPOKEN)


async def examine_broker(plan: Plan, broker: Address, addresses: Sequence[Address]) -> Examined:
    """Check one Kafka broker at each of its IP addresses; see `checks.Checks`."""
    secure = plan.secure(broker)
    timed = await run_all([partial(_examine, plan, secure, address) for address in addresses])
    answered = list(zip(addresses, timed, strict=True))
    connected = [_connected(plan, broker, address, outcome) for address, outcome in answered]
    agreed = chain.from_iterable(judge_tls(broker, at, outcome.agreed) for at, outcome in answered)
    spoken = [outcome.answer for outcome in timed if isinstance(outcome.answer, Broker)]
    if not spoken:
        return Examined(connected, tuple(agreed))
    logins = verdicts.judge_login(f"gateway at {broker}", [answer.login for answer in spoken])
    metadata = _first_metadata(answer.metadata for answer in spoken)
    finding = verdicts.judge_metadata(f"metadata at {broker}", metadata)
    brokers = {} if isinstance(metadata, Stranger) else metadata
    tls = plan.cluster.has_tls  # as the gateway does, since no answer says it
    advertised = {address._replace(tls=tls) for address in brokers.values()}
    return Examined(connected, (*agreed, *logins, finding), advertised, frozenset(brokers))


async def _examine(plan: Plan, secure: Secure | None, address: Address) -> TimedAnswer[Broker]:
    """Ask a broker as the gateway does: with the mechanism that suits its credential best; if the
    broker does not support that, with one of those that the broker names."""
    login = _login(plan, MECHANISMS)
    timed = await _ask(plan.network, secure, address, login)
    if isinstance(timed.answer, Broker) and isinstance(timed.answer.login, Rejected):
        other = _login(plan, timed.answer.login.offered)
        if other is not None and other != login:
            return await _ask(plan.network, secure, address, other)
    return timed


def _login(plan: Plan, offered: Collection[str]) -> Login | None:
    """Return the gateway's own credential and the mechanism for it; None if brokers get none.
    `offered`: the mechanisms that the broker supports."""
    if plan.own is None or Mode.VERIFY not in plan.modes:
        return None
    credential = plan.own.current()
    plainly = plan.cluster.has_tls or shows_passwords(plan.cluster.credential)
    mechanism = chosen(credential, offered, plainly=plainly)
    return None if mechanism is None else Login(credential, mechanism)


async def _ask(
    network: Network, secure: Secure | None, address: Address, login: Login | None
) -> TimedAnswer[Broker]:
    return await asking.ask(network, address, question(login), question(), secure)


def _connected(
    plan: Plan, broker: Address, address: Address, timed: TimedAnswer[Broker]
) -> Finding:
    check = f"broker {name_address(broker, address)}"
    if isinstance(timed.answer, Insecure):
        return judge_insecure(check, timed.answer, plan.trust(broker), time.time())
    return verdicts.judge_broker(check, broker, timed.answer, timed.seconds)


def _first_metadata(
    metadata: Iterable[Mapping[int, Address] | Stranger],
) -> Mapping[int, Address] | Stranger:
    """Return the metadata from one of a broker's addresses, or why none of them sent any."""
    ordered = sorted(metadata, key=lambda brokers: isinstance(brokers, Stranger))
    return ordered[0]
