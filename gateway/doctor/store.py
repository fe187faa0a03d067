"""Checks that the store of shared limits responds, and that it is fast enough."""

from __future__ import annotations

import trio

from gateway.config import model
from gateway.doctor.files import file_error
from gateway.doctor.finding import Finding, fail, ok, warn
from gateway.doctor.reach import Network
from gateway.errors import ConfigurationError
from gateway.fleet.store import Store, StoreError
from gateway.fleet.stores import store_of
from gateway.policy.reservations import UnitRequest

_ASK = UnitRequest("doctor", rate=1, burst=1, units=0)
"""A request for no units; it leaves two keys in the store for a second."""

_TIMES = 5
"""Number of measured requests; the fastest shows the latency, the others also other load."""


async def examine(configured: model.Store, network: Network) -> Finding:
    """Send requests to the store as the gateway would, but with a longer timeout; return the
    finding about the store."""
    check = f"store {configured.url}"
    try:
        store = store_of(configured.model_copy(update={"timeout": network.timeout}))
    except ConfigurationError as error:
        return file_error(check, error)
    async with trio.open_nursery() as nursery:
        await nursery.start(store.run)
        try:
            finding = _judge_time(check, await _fastest_answer(store), configured.timeout)
        except StoreError as error:
            finding = _judge_error(check, error)
        await store.close()
    return finding


async def _fastest_answer(store: Store) -> float:
    """Return the seconds of the fastest response; the first request also opens the connection."""
    await _ask(store)
    took = []
    for _ in range(_TIMES):
        began = trio.current_time()
        await _ask(store)
        took.append(trio.current_time() - began)
    return min(took)


async def _ask(store: Store) -> None:
    (answer,) = await store.reserve([_ASK])
    if isinstance(answer, StoreError):
        raise answer


def _judge_error(check: str, error: StoreError) -> Finding:
    remedy = (
        "See that it is up, that `url` names it, and that its user may do what "
        "docs/configuration.md lists. Until then each rule's on_store_failure holds."
    )
    return fail(check, str(error), remedy)


def _judge_time(check: str, seconds: float, timeout: float) -> Finding:
    detail = f"answers in {seconds * 1000:.1f} ms"
    if seconds <= timeout / 2:
        return ok(check, detail)
    return warn(
        check,
        f"{detail}, and `timeout` is {timeout * 1000:.0f} ms",
        "Use a store that is nearer, or raise `timeout`.",
    )
