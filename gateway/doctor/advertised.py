"""Checks the addresses that brokers advertise: each must be on the allow-list, must resolve, must
accept connections, and must have a name for clients."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial

from gateway.brokers.names import TemplateNames
from gateway.config import model
from gateway.doctor import secured, targets
from gateway.doctor.checks import Plan
from gateway.doctor.finding import Finding, fail, ok
from gateway.doctor.insecure import Insecure, judge_insecure
from gateway.doctor.reach import Resolved, Unreached, judge_unreached, run_all
from gateway.wire.address import Address
from gateway.wire.contract import Denial


async def examine(plan: Plan, addresses: Sequence[Address], setting: str) -> list[Finding]:
    """Check each advertised address as the gateway would dial it for a client. Return the findings
    about connections, about addresses that the setting `targets` forbids, and about names for
    clients. `setting`: the broker's setting for its advertised address, as findings name it."""
    cluster, names = plan.cluster, plan.names
    resolved = await run_all([partial(plan.network.resolve, address.host) for address in addresses])
    known = dict(zip(addresses, resolved, strict=True))
    missing = [address for address in addresses if is_forbidden(cluster, address, known[address])]
    arrived = await run_all(
        [
            partial(_check_reachable, plan, address, known[address], setting)
            for address in addresses
            if address not in missing
        ]
    )
    refused = [_refused(address, cluster, missing) for address in missing]
    # Sealed names are for any broker.
    named = [_named(address, names) for address in addresses] if names is not None else []
    return [*arrived, *refused, *named]


def is_forbidden(cluster: model.Cluster, address: Address, resolved: Resolved) -> bool:
    """Return whether the allow-list forbids all IP addresses to which a host has resolved; False if
    it has not resolved."""
    reachable = targets.allowed_ips(targets.allow_list(cluster), address, resolved.ips)
    return bool(resolved.ips) and not reachable


def _refused(address: Address, cluster: model.Cluster, missing: Sequence[Address]) -> Finding:
    listed = "targets do" if cluster.targets else "`brokers` (there are no `targets`) do"
    return fail(
        _title(address),
        f"brokers lead clients there, and {listed} not allow it",
        "If it is a broker of yours, in this cluster:",
        targets.widen_targets(cluster, missing),
    )


async def _check_reachable(
    plan: Plan, address: Address, resolved: Resolved, setting: str
) -> Finding:
    check = _title(address)
    if not resolved.ips:
        return fail(
            check,
            f"does not resolve here: {resolved.error}",
            f"Let the brokers advertise a name that the gateway's machine knows ({setting}).",
        )
    ips = targets.allowed_ips(targets.allow_list(plan.cluster), address, resolved.ips)
    tries = [partial(_try_connect, plan, address, ip) for ip in ips]
    failures = [failure for failure in await run_all(tries) if failure is not None]
    if len(failures) < len(ips):
        return ok(check, f"allowed, and can be connected to{' with TLS' if address.tls else ''}")
    first = failures[0]
    if isinstance(first, Insecure):
        return judge_insecure(check, first, plan.trust(address), time.time())
    return judge_unreached(check, address, first.code)


async def _try_connect(plan: Plan, address: Address, ip: str) -> Unreached | Insecure | None:
    """Connect once. Return why that failed, or None if it succeeded."""
    there = Address(ip, address.port)
    stream = await secured.connect(plan.network, there, plan.secure(address))
    if isinstance(stream, Insecure):
        return await secured.explain(plan.network, there, address.host, stream)
    if isinstance(stream, Unreached):
        return stream
    stream.close()
    return None


def _named(address: Address, names: TemplateNames) -> Finding:
    check, name = f"name of {address}", names.advertise(address)
    if not isinstance(name, Denial):
        return ok(check, f"{name.host}, towards clients")
    return fail(
        check,
        "does not fit names.template.broker: lookups that lead there fail",
        "Write the template as the brokers advertise themselves, or use sealed names:",
        "names: {sealed: {}}",
    )


def _title(address: Address) -> str:
    return f"advertised {address}"
