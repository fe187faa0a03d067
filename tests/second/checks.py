"""The doctor's checks of `memo`: brokers need only accept connections."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from gateway.doctor.checks import Examined, Plan, Spoken
from gateway.doctor.finding import Finding, ok
from gateway.doctor.reach import Network, Unreached, judge_unreached, run_all
from gateway.doctor.secured import Secure
from gateway.wire.address import Address

ADVERTISED_BY = "a setting of a memo's broker"
"""See `checks.Checks`."""


async def examine_broker(plan: Plan, broker: Address, addresses: Sequence[Address]) -> Examined:
    """See `checks.Checks`."""
    return Examined(await run_all([partial(_connect, plan.network, it) for it in addresses]))


async def identify(network: Network, address: Address, secure: Secure | None) -> Spoken | None:
    """See `checks.Checks`."""
    return None


async def _connect(network: Network, address: Address) -> Finding:
    sock = await network.connect(address)
    if isinstance(sock, Unreached):
        return judge_unreached(f"broker {address}", address, sock.code)
    sock.close()
    return ok(f"broker {address}", "accepts connections")
