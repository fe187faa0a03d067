"""Checks the gateway's addresses for brokers that have ids: each broker needs an address of the
gateway, and the host of this address must resolve."""

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
    """Check the addresses that each listener of a cluster has for brokers. `ids`: the ids of the
    brokers, as the brokers reported them; empty if they are unknown."""
    findings = await run_all(
        [
            partial(_examine_listener, plan.network, listener, sorted(ids))
            for listener in plan.listeners
        ]
    )
    return list(chain.from_iterable(findings))


async def _examine_listener(
    network: Network, listener: model.Listener, ids: Sequence[int]
) -> list[Finding]:
    """Return the findings for one listener; an empty list if its brokers have no ids."""
    endpoints = make_endpoints(listener)
    if endpoints is None:
        return []
    given = {id: endpoints.of(id) for id in ids}
    reached = [address for address in given.values() if isinstance(address, Address)]
    missing = [id for id, address in given.items() if not isinstance(address, Address)]
    hosts = list(dict.fromkeys(address.host for address in (endpoints.any, *reached)))
    id_findings = [_judge_ids(listener, ids, missing)] if ids else []
    return [*id_findings, await _examine_hosts(network, listener, hosts)]


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
        zip(hosts, await run_all([partial(network.resolve, host) for host in hosts]), strict=True)
    )
    unknown = [host for host, resolution in resolved.items() if not resolution.ips]
    if unknown:
        return warn(
            check,
            f"clients are led to {listed(unknown)}, which does not resolve here",
            "See that it does where clients are; they may ask other name servers. Here: "
            f"getent hosts {unknown[0]}",
        )
    local = [host for host, resolution in resolved.items() if all(map(is_loopback, resolution.ips))]
    if local and not all(is_loopback(bind.host) for bind in listener.bind):
        return warn(
            check,
            f"clients are led to {listed(local)}, which leads each to its own machine, and the "
            "listener is bound for others",
            "In advertise, name the host by which clients reach this gateway. All is well if only "
            "this machine's /etc/hosts says so.",
        )
    return ok(check, f"clients are led to {listed(hosts)}")


def in_ranges(numbers: Iterable[int]) -> str:
    """Return numbers, in their order, as a text such as `0-2,7`. Settings have broker ids in this
    form."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in runs)
