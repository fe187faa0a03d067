"""Checks the brokers of one cluster: whether their names resolve, what the protocol's own checks
find, the addresses that the brokers advertise, and the gateway's addresses for brokers that have
ids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import chain

from gateway.doctor import advertised, endpoints
from gateway.doctor.checks import Checks, Examined, Plan, checks_of
from gateway.doctor.finding import Finding, Section, Status, fail, ok, skip, warn
from gateway.doctor.reach import Resolved, is_literal, run_all
from gateway.protocols import PLUGINS
from gateway.wire.address import Address

SLOW_NAME = 1.0
"""Seconds. The C library asks a silent name server again after 5 s, half of a client's patience."""


async def examine(plan: Plan) -> Section:
    """Check all brokers of one cluster concurrently, and return the cluster's section of the
    report."""
    checks = checks_of(PLUGINS[plan.protocol])
    examined = await run_all(
        [partial(_examine_broker, checks, plan, broker) for broker in plan.cluster.brokers]
    )
    findings = list(chain.from_iterable(_findings(names, result) for names, result in examined))
    named = sorted(set().union(*(result.advertised for _, result in examined)))
    findings += await advertised.examine(plan, named, checks.ADVERTISED_BY)
    ids = set().union(*(result.ids for _, result in examined))
    findings += await endpoints.examine(plan, ids)
    if not plan.modes:
        findings.append(warn("listeners", "none leads there", "Give it one, or take it out."))
    return Section(f"cluster {plan.name}", tuple(findings))


async def _examine_broker(
    checks: Checks, plan: Plan, broker: Address
) -> tuple[list[Finding], Examined]:
    resolved = await plan.network.resolve(broker.host)
    if broker.tls and plan.tls is None:
        unread = "not tried: a file of the cluster's TLS cannot be used, see above"
        return _named(broker, resolved), Examined([skip(f"broker {broker}", unread)])
    addresses = [Address(ip, broker.port, broker.tls) for ip in resolved.ips]
    return _named(broker, resolved), await checks.examine_broker(plan, broker, addresses)


def _findings(names: Sequence[Finding], examined: Examined) -> list[Finding]:
    return [*names, *_downgrade_failures(examined.connected), *examined.others]


def _downgrade_failures(rows: Sequence[Finding]) -> Sequence[Finding]:
    """Turn failures of one address into warnings if another address of the name works."""
    if all(row.status is Status.FAIL for row in rows):
        return rows
    return [replace(row, status=Status.WARN) if row.status is Status.FAIL else row for row in rows]


def _named(broker: Address, resolved: Resolved) -> list[Finding]:
    check = f"name {broker.host}"
    if is_literal(broker.host):
        return []
    if not resolved.ips:
        return [
            fail(
                check,
                f"does not resolve: {resolved.error}",
                "See that the name is right, and that this machine asks a name server that "
                f"knows it: getent hosts {broker.host}",
            )
        ]
    detail = ", ".join(resolved.ips)
    if resolved.others:
        detail += f" and {resolved.others} more, which are not tried"
    if resolved.seconds > SLOW_NAME:
        return [
            warn(
                check,
                f"{detail}, after {resolved.seconds:.1f} s",
                "New connections wait for it: see the name servers in /etc/resolv.conf.",
            )
        ]
    return [ok(check, f"{detail} in {resolved.seconds * 1000:.0f} ms")]
