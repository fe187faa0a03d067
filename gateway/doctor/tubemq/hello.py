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
from gateway.wire.tubemq.asking import find_brokers, is_active
from gateway.wire.tubemq.frames import length

SPOKEN = "TubeMQ"
"""The protocol's name, in texts."""

LARGEST_ANSWER = 512 * 1024
"""Bytes of a frame: as many brokers as a listener may have ids, with the longest hosts."""


@dataclass(frozen=True, slots=True)
class Master:
    """A master's answers. `told`: where brokers are, by id; of the active one alone."""

    is_active: bool
    told: Mapping[int, Address]


def greet(*, tls: bool) -> Generator[Step, StepResult, Master | Stranger | Unreached]:
    """Ask both, and return the answers. Raises `PeerError` if they are none. `tls`: the master is
    reached by TLS."""
    if not isinstance((yield Dial()), Dialled):
        return Unreached(None)
    active = yield from is_active()
    if isinstance(active, Denial):
        return read_silence(active)
    return Master(active, (yield from find_brokers(tls=tls)) if active else {})


def question(*, tls: bool) -> Question[Master]:
    """Return the question."""
    return Question(partial(greet, tls=tls), length, LARGEST_ANSWER)
