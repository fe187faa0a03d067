"""Checks the addresses by which clients reach brokers that have ids: one for each, with a host that
resolves."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import partial
from itertools import chain

from gateway.assembly import make_endpoints
from gateway.config import model
from gateway.config.units import is_loopback
from gateway.doctor.certificates import listed
from gateway.doctor.checks import Plan
from gateway.doctor.finding import Finding, fail, ok, warn
from gateway.doctor.reach import Network, run_all
from gateway.wire.address import Address


async def examine(plan: Plan, ids: Collection[int]) -> list[Finding]:
    """Check each listener of a cluster. `ids`: of its brokers, as they say; empty: unknown."""
    found = await run_all(
        [partial(_examine_listener, plan.network, it, sorted(ids)) for it in plan.listeners]
    )
    return list(chain.from_iterable(found))


async def _examine_listener(
    network: Network, listener: model.Listener, ids: Sequence[int]
) -> list[Finding]:
    """Return no findings if brokers have no ids."""
    endpoints = make_endpoints(listener)
    if endpoints is None:
        return []
    given = {id: endpoints.of(id) for id in ids}
    reached = [it for it in given.values() if isinstance(it, Address)]
    missing = [id for id, it in given.items() if not isinstance(it, Address)]
    hosts = list(dict.fromkeys(it.host for it in (endpoints.any, *reached)))
    told = [_judge_ids(listener, ids, missing)] if ids else []
    return [*told, await _examine_hosts(network, listener, hosts)]


def _judge_ids(listener: model.Listener, ids: Sequence[int], missing: Sequence[int]) -> Finding:
    check = f"ids at {listener.name}"
    ports = listener.advertise.ports if listener.advertise is not None else None
    if ports is None:
        return ok(check, "each broker has a name")
    if not missing:
        return ok(check, f"each of {in_ranges(ids)} has a port of {in_ranges(ports.ports)}")
    last = ports.ports[-1]
    more = in_ranges(range(last + 1, last + 1 + len(missing)))
    return fail(
        check,
        f"no address is declared for {in_ranges(missing)}: clients that want such a broker are led "
        "to any other, and fail there",
        f"In advertise.ports, behind the others, whose ports stay; clients must reach {more} too:",
        f"ids: {in_ranges([*ports.ids, *missing])}",
    )


async def _examine_hosts(
    network: Network, listener: model.Listener, hosts: Sequence[str]
) -> Finding:
    check = f"address of {listener.name}"
    resolved = dict(
        zip(hosts, await run_all([partial(network.resolve, it) for it in hosts]), strict=True)
    )
    unknown = [host for host, it in resolved.items() if not it.ips]
    if unknown:
        return warn(
            check,
            f"clients are led to {listed(unknown)}, which does not resolve here",
            "See that it does where clients are; they may ask other name servers. Here: "
            f"getent hosts {unknown[0]}",
        )
    local = [host for host, it in resolved.items() if all(map(is_loopback, it.ips))]
    if local and not all(is_loopback(it.host) for it in listener.bind):
        return warn(
            check,
            f"clients are led to {listed(local)}, which leads each to its own machine, and the "
            "listener is bound for others",
            "In advertise, name the host by which clients reach this gateway. All is well if only "
            "this machine's /etc/hosts says so.",
        )
    return ok(check, f"clients are led to {listed(hosts)}")


def in_ranges(numbers: Iterable[int]) -> str:
    """Return numbers in their order as a text, `0-2,7`, as ids of brokers are written."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in runs)
