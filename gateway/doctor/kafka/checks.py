"""Checks one Kafka broker: its API versions, and the brokers that its metadata lists; see
`gateway.doctor.checks`."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import chain

from gateway.doctor import asking
from gateway.doctor.asking import TimedAnswer, judge_tls, name_address, spoken_of
from gateway.doctor.checks import Examined, Plan, Spoken
from gateway.doctor.finding import Finding
from gateway.doctor.insecure import Insecure, judge_insecure
from gateway.doctor.kafka import verdicts
from gateway.doctor.kafka.hello import QUESTION, SPOKEN, Broker
from gateway.doctor.reach import Network, run_all
from gateway.doctor.secured import Secure
from gateway.doctor.strangers import Stranger
from gateway.wire.address import Address

ADVERTISED_BY = "advertised.listeners in server.properties"
"""See `checks.Checks`."""


async def identify(network: Network, address: Address, secure: Secure | None) -> Spoken | None:
    """Return which protocol the peer at an IP address speaks; see `checks.Checks`."""
    return spoken_of((await _ask(network, secure, address)).answer, SPOKEN)


async def examine_broker(plan: Plan, broker: Address, addresses: Sequence[Address]) -> Examined:
    """Check one Kafka broker at each of its IP addresses; see `checks.Checks`."""
    secure = plan.secure(broker)
    timed = await run_all([partial(_ask, plan.network, secure, address) for address in addresses])
    answered = list(zip(addresses, timed, strict=True))
    connected = [_connected(plan, broker, address, outcome) for address, outcome in answered]
    agreed = chain.from_iterable(judge_tls(broker, at, outcome.agreed) for at, outcome in answered)
    metadata = _first_metadata(outcome.answer for outcome in timed)
    if metadata is None:
        return Examined(connected, tuple(agreed))
    finding = verdicts.judge_metadata(f"metadata at {broker}", metadata)
    brokers = {} if isinstance(metadata, Stranger) else metadata
    tls = plan.cluster.has_tls  # as the gateway does, since no answer says it
    advertised = {address._replace(tls=tls) for address in brokers.values()}
    return Examined(connected, (*agreed, finding), advertised, frozenset(brokers))


async def _ask(network: Network, secure: Secure | None, address: Address) -> TimedAnswer[Broker]:
    return await asking.ask(network, address, QUESTION, QUESTION, secure)


def _connected(
    plan: Plan, broker: Address, address: Address, timed: TimedAnswer[Broker]
) -> Finding:
    check = f"broker {name_address(broker, address)}"
    if isinstance(timed.answer, Insecure):
        return judge_insecure(check, timed.answer, plan.trust(broker), time.time())
    return verdicts.judge_broker(check, broker, timed.answer, timed.seconds)


def _first_metadata(answers: Iterable[object]) -> Mapping[int, Address] | Stranger | None:
    """Return the metadata from one of a broker's addresses, or why none of them sent any; None if
    there is no Kafka broker at these addresses."""
    metadata = [answer.metadata for answer in answers if isinstance(answer, Broker)]
    return next(
        (brokers for brokers in metadata if not isinstance(brokers, Stranger)),
        metadata[0] if metadata else None,
    )
