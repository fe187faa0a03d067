"""Sends one CONNECT to an address, and returns the outcome."""

from __future__ import annotations

from functools import partial

from gateway.doctor import asking
from gateway.doctor.asking import Question, TimedAnswer
from gateway.doctor.pulsar.hello import (
    Accepted,
    Probe,
    Rejected,
    anonymous,
    frame_length,
    greet,
)
from gateway.doctor.reach import Network
from gateway.doctor.secured import Secure
from gateway.wire.address import Address

LARGEST_ANSWER = 64 * 1024
"""Bytes of the largest frame. Responses to CONNECT and LOOKUP have some hundred."""


async def ask(
    network: Network, address: Address, probe: Probe, secure: Secure | None = None
) -> TimedAnswer[Accepted | Rejected]:
    """Send one CONNECT to an address whose host is an IP literal, and return the outcome. `secure`:
    the TLS of the connection; None: no TLS. If the peer should speak TLS and does not, no
    credential is sent to it."""
    plain = _question(anonymous())
    return await asking.ask(network, address, _question(probe), plain, secure)


def _question(probe: Probe) -> Question[Accepted | Rejected]:
    return Question(partial(greet, probe), frame_length, LARGEST_ANSWER)
