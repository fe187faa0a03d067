"""The store that replicas share limits by: does it answer, and soon enough?"""

from __future__ import annotations

import trio

from gateway.config import model
from gateway.doctor.files import mistaken
from gateway.doctor.finding import Finding, fail, ok, warn
from gateway.doctor.reach import Network
from gateway.errors import ConfigurationError
from gateway.fleet.store import Store, StoreError
from gateway.fleet.stores import store_of
from gateway.policy.reservations import UnitRequest

_ASK = UnitRequest("doctor", rate=1, burst=1, units=0)
"""Takes nothing of anything, and leaves two keys for a second."""

_TIMES = 5
"""Questions; the fastest answer tells of the way, the others of what else is going on."""


async def examine(configured: model.Store, network: Network) -> Finding:
    """Ask as the gateway would, but with more patience."""
    what = f"store {configured.url}"
    try:
        store = store_of(configured.model_copy(update={"timeout": network.patience}))
    except ConfigurationError as error:
        return mistaken(what, error)
    async with trio.open_nursery() as nursery:
        await nursery.start(store.run)
        try:
            found = _judged(what, await _answered(store), configured.timeout)
        except StoreError as error:
            found = _unanswered(what, error)
        await store.close()
    return found


async def _answered(store: Store) -> float:
    """In how many seconds; the first question waits for the connection, too."""
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


def _unanswered(what: str, error: StoreError) -> Finding:
    remedy = (
        "See that it is up, that `url` names it, and that its user may do what "
        "docs/configuration.md lists. Until then each rule's on_store_failure holds."
    )
    return fail(what, str(error), remedy)


def _judged(what: str, seconds: float, allowed: float) -> Finding:
    told = f"answers in {seconds * 1000:.1f} ms"
    if seconds <= allowed / 2:
        return ok(what, told)
    return warn(
        what,
        f"{told}, and `timeout` is {allowed * 1000:.0f} ms",
        "Use a store that is nearer, or raise `timeout`.",
    )
