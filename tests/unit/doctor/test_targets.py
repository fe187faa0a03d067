"""The allow-list, and the line that adds exactly the missing addresses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from gateway.config.load import build
from gateway.config.model import Cluster
from gateway.doctor.targets import allow_list, allowed_ips, widen_targets
from gateway.wire.address import Address

LISTED = {"hosts": ["pulsar-*.internal"], "networks": ["10.0.0.0/8"], "ports": [6650]}


def cluster(targets: dict[str, Any] | None = None) -> Cluster:
    main: dict[str, Any] = {"brokers": "pulsar://one.internal:6650"}
    data = {
        "version": 1,
        "listeners": [{"name": "l", "bind": "127.0.0.1:0", "cluster": "main"}],
        "clusters": {"main": main | ({"targets": targets} if targets else {})},
    }
    configuration, mistakes = build(data, Path())
    assert configuration is not None, mistakes
    return configuration.clusters["main"]


def test_without_targets_the_brokers_themselves_are_allowed() -> None:
    targets = allow_list(cluster())
    assert allowed_ips(targets, Address("one.internal", 6650), ["10.0.0.1"]) == ("10.0.0.1",)
    assert allowed_ips(targets, Address("one.internal", 6651), ["10.0.0.1"]) == ()
    assert allowed_ips(targets, Address("10.0.0.1", 6650), ["10.0.0.1"]) == ()


def test_a_network_allows_the_addresses_inside_it() -> None:
    targets = allow_list(cluster(LISTED))
    ips = ["10.0.0.1", "192.0.2.1"]
    assert allowed_ips(targets, Address("other.internal", 6650), ips) == ("10.0.0.1",)


@pytest.mark.parametrize(
    ("targets", "missing", "line"),
    [
        (
            None,
            [Address("two.internal", 6650)],
            "targets: {hosts: [one.internal, two.internal], ports: [6650]}",
        ),
        (
            LISTED,
            [Address("pulsar-1.internal", 7650)],
            "targets: {hosts: [pulsar-*.internal], networks: [10.0.0.0/8], ports: [6650, 7650]}",
        ),
        (
            {"networks": ["10.0.0.0/8"], "ports": [6650]},
            [Address("two.internal", 6650)],
            "targets: {hosts: [two.internal], networks: [10.0.0.0/8], ports: [6650]}",
        ),
    ],
)
def test_the_line_contains_listed_and_missing_targets(
    targets: dict[str, Any] | None, missing: list[Address], line: str
) -> None:
    assert widen_targets(cluster(targets), missing) == line


@pytest.mark.parametrize("targets", [None, LISTED])
@pytest.mark.parametrize(
    "missing",
    [Address("two.internal", 7650), Address("192.0.2.1", 6650), Address("fd00::1", 6650)],
)
def test_the_line_allows_the_missing_addresses(
    targets: dict[str, Any] | None, missing: Address
) -> None:
    line = yaml.safe_load(widen_targets(cluster(targets), [missing]))
    widened_list = allow_list(cluster(line["targets"]))
    ip = missing.host if missing.host[0] != "t" else "192.0.2.9"
    assert allowed_ips(widened_list, missing, [ip]) == (ip,)
    assert allowed_ips(widened_list, Address("one.internal", 6650), ["10.0.0.1"])
