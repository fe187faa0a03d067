"""Compares the allow-list with the addresses that brokers advertise."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import yaml

from gateway.brokers.targets import TargetList
from gateway.config import model
from gateway.wire.address import Address


def allow_list(cluster: model.Cluster) -> TargetList:
    """Return the allow-list of a cluster: the addresses that the gateway may dial."""
    return TargetList.of(cluster.brokers, cluster.targets)


def allowed_ips(targets: TargetList, address: Address, ips: Iterable[str]) -> tuple[str, ...]:
    """Return those of a host's IP addresses that the gateway may dial."""
    return tuple(ip for ip in ips if targets.check(address.host, ip, address.port) is None)


def widen_targets(cluster: model.Cluster, missing: Sequence[Address]) -> str:
    """Return a line of configuration: the cluster's setting `targets` with these addresses
    added."""
    known = cluster.targets
    hosts = known.hosts if known else tuple(broker.host for broker in cluster.brokers)
    ports = known.ports if known else tuple(broker.port for broker in cluster.brokers)
    wanted: dict[str, list[str] | list[int]] = {
        "hosts": _with(hosts, (address.host for address in missing))
    }
    if known and known.networks:
        wanted["networks"] = [str(network) for network in known.networks]
    wanted["ports"] = sorted({*ports, *(address.port for address in missing)})
    return f"targets: {_flow(wanted)}"


def _with(listed: Sequence[str], hosts: Iterable[str]) -> list[str]:
    pattern = TargetList(listed, ports=[1])
    added = (host for host in hosts if pattern.check(host, "", 1) is not None)
    return list(dict.fromkeys((*listed, *added)))


def _flow(value: object) -> str:
    text: str = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=10_000)
    return text.strip()
