"""The doctor's requests to a master of TubeMQ: whether the master is the active one, and where
brokers are."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from functools import partial

from gateway.doctor.asking import Question
from gateway.doctor.reach import Unreached
from gateway.doctor.strangers import Stranger, read_silence
from gateway.wire.address import Address
from gateway.wire.contract import Denial, Dial, Dialled, Step, StepResult
from gateway.wire.tubemq.asking import Role, find_brokers, role
from gateway.wire.tubemq.frames import length

SPOKEN = "TubeMQ"
"""The protocol's name, in texts."""

LARGEST_ANSWER = 512 * 1024
"""Bytes of a frame: as many brokers as a listener may have ids, with the longest hosts."""


@dataclass(frozen=True, slots=True)
class Master:
    """The responses of a master. `role`: active, standby, or no master at all. `brokers`: the
    addresses of brokers, by id; empty unless the master is active."""

    role: Role
    brokers: Mapping[int, Address]


def greet(*, tls: bool) -> Generator[Step, StepResult, Master | Stranger | Unreached]:
    """Ask a master whether it is active and, if it is, where brokers are; return the responses.
    `tls`: the connection has TLS. Raises `PeerError` if the peer does not speak TubeMQ's protocol.
    """
    if not isinstance((yield Dial()), Dialled):
        return Unreached(None)
    outcome = yield from role()
    if isinstance(outcome, Denial):
        return read_silence(outcome)
    if outcome is not Role.ACTIVE:
        return Master(outcome, {})
    return Master(outcome, (yield from find_brokers(tls=tls)).brokers)


def question(*, tls: bool) -> Question[Master]:
    """Return the requests of `greet` as a `Question`. `tls`: the connection has TLS."""
    return Question(partial(greet, tls=tls), length, LARGEST_ANSWER)
