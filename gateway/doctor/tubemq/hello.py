"""What the doctor asks a master of TubeMQ: whether it is active, and where brokers are."""

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
    """A master's answers. `told`: where brokers are, by id; of the active one alone. `role`: it may
    be no master after all."""

    role: Role
    told: Mapping[int, Address]


def greet(*, tls: bool) -> Generator[Step, StepResult, Master | Stranger | Unreached]:
    """Ask a master whether it is active, and the active one where brokers are; return its answers.
    Raises `PeerError` if it does not answer in TubeMQ's protocol. `tls`: the connection has TLS."""
    if not isinstance((yield Dial()), Dialled):
        return Unreached(None)
    found = yield from role()
    if isinstance(found, Denial):
        return read_silence(found)
    if found is not Role.ACTIVE:
        return Master(found, {})
    return Master(found, (yield from find_brokers(tls=tls)).brokers)


def question(*, tls: bool) -> Question[Master]:
    """Return the question."""
    return Question(partial(greet, tls=tls), length, LARGEST_ANSWER)
