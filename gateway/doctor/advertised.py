"""The addresses that brokers lead clients to: allowed, known here, reachable, and with a name."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from gateway.brokers.names import TemplateNames
from gateway.config import model
from gateway.doctor import targets, verdicts
from gateway.doctor.finding import Finding, fail, ok
from gateway.doctor.hello import Unreached
from gateway.doctor.reach import Network, Resolved, together
from gateway.wire.address import Address
from gateway.wire.contract import Denial


async def examine(
    network: Network,
    cluster: model.Cluster,
    names: TemplateNames | None,
    addresses: Sequence[Address],
) -> list[Finding]:
    """Try each address as the gateway would when a client comes back with its name.

    `names`: of the cluster's template; None: names are sealed, every broker has one.
    """
    resolved = await together([partial(network.resolve, it.host) for it in addresses])
    known = dict(zip(addresses, resolved, strict=True))
    missing = [address for address in addresses if is_refused(cluster, address, known[address])]
    arrived = await together(
        [
            partial(_arrive, network, cluster, address, known[address])
            for address in addresses
            if address not in missing
        ]
    )
    refused = [_refused(address, cluster, missing) for address in missing]
    named = [_named(address, names) for address in addresses] if names is not None else []
    return [*arrived, *refused, *named]


def is_refused(cluster: model.Cluster, address: Address, resolved: Resolved) -> bool:
    """Whether the allow-list keeps the gateway from all that a host resolves to."""
    reachable = targets.allowed(targets.allow_list(cluster), address, resolved.ips)
    return bool(resolved.ips) and not reachable


def _refused(address: Address, cluster: model.Cluster, missing: Sequence[Address]) -> Finding:
    listed = "targets do" if cluster.targets else "`brokers` (there are no `targets`) do"
    return fail(
        _called(address),
        f"brokers lead clients there, and {listed} not allow it",
        "If it is a broker of yours, in this cluster:",
        targets.widened(cluster, missing),
    )


async def _arrive(
    network: Network, cluster: model.Cluster, address: Address, resolved: Resolved
) -> Finding:
    what = _called(address)
    if not resolved.ips:
        return fail(
            what,
            f"does not resolve here: {resolved.error}",
            "Let the brokers advertise a name that the gateway's machine knows "
            "(advertisedAddress in broker.conf).",
        )
    ips = targets.allowed(targets.allow_list(cluster), address, resolved.ips)
    tries = [partial(_connects, network, Address(ip, address.port)) for ip in ips]
    failures = [it for it in await together(tries) if it is not None]
    if len(failures) < len(ips):
        return ok(what, "allowed, and can be connected to")
    return verdicts.unreached(what, address, failures[0].code)


async def _connects(network: Network, address: Address) -> Unreached | None:
    """None: yes."""
    sock = await network.connect(address)
    if isinstance(sock, Unreached):
        return sock
    sock.close()
    return None


def _named(address: Address, names: TemplateNames) -> Finding:
    what, name = f"name of {address}", names.advertise(address)
    if not isinstance(name, Denial):
        return ok(what, f"{name.host}, towards clients")
    return fail(
        what,
        "does not fit names.template.broker: lookups that lead there fail",
        "Write the template as the brokers advertise themselves, or use sealed names:",
        "names: {sealed: {}}",
    )


def _called(address: Address) -> str:
    return f"advertised {address}"
