"""A pytest plugin: tests in three tiers, by what a run of them costs.

    pytest --tier check    starts no process: what one runs after each edit
    pytest --tier test     and what a change must not break: scenes on real brokers among it
    pytest --tier all      everything, hours long
    pytest tests/plane     without the option, whatever its tier

A test has the tier of its folder (`FOLDERS`), or another by the nearest marker `tier("...")`, which
says `test` or `all`. Of versions of an API, the lower tiers have those at the ends
(`tests/support/versions.py`).
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

TESTS = Path(__file__).resolve().parents[1]

CHECK, TEST, ALL = TIERS = ("check", "test", "all")


class Folder(NamedTuple):
    """`tier`: of its tests without a marker. `budget`: seconds that its tests may take in
    `make test` on a calm machine, one after the other; 0 if it runs none. `purpose`: what they
    show."""

    tier: str
    budget: int
    purpose: str


FOLDERS = {
    "unit": Folder(CHECK, 300, "modules by themselves"),
    "plane": Folder(CHECK, 25, "the data plane on socket pairs, turn by turn"),
    "playbooks": Folder(CHECK, 25, "Pulsar's handlers: frames in, effects or steps out"),
    "playbooks_kafka": Folder(CHECK, 30, "Kafka's handlers"),
    "playbooks_tubemq": Folder(CHECK, 5, "TubeMQ's handlers"),
    "model": Folder(CHECK, 25, "dispatch and limits, compared with a model in memory"),
    "orders": Folder(CHECK, 5, "the broker's model, compared with recorded brokers"),
    "second": Folder(CHECK, 5, "the contract of all protocols, by one made up for tests"),
    "scenes": Folder(TEST, 170, "each protocol on a real broker: what users notice"),
    "conformance": Folder(TEST, 270, "every reader of frames, on compiled and on pure loops"),
    "hostile": Folder(TEST, 165, "hostile peers of a gateway process"),
    "fuzz": Folder(TEST, 100, "a short fuzz"),
    "sandbox": Folder(TEST, 115, "a gateway process before brokers in memory"),
    "shared": Folder(TEST, 120, "clients on the sandbox and on real brokers alike"),
    "demo": Folder(TEST, 40, "what `make run` shows"),
    "docs": Folder(TEST, 80, "commands in the documentation"),
    "deploy": Folder(TEST, 10, "manifests, dashboards and alerts"),
    "bench": Folder(TEST, 15, "the bench itself"),
    "suites": Folder(TEST, 5, "how results of clients' own tests are compared"),
    "support": Folder(TEST, 10, "the helpers of other tests"),
    "pipeline": Folder(ALL, 200, "jobs of Spark"),
    "edge": Folder(ALL, 0, "gateways before brokers that check credentials"),
    "doctor": Folder(ALL, 0, "the doctor with real brokers"),
    "helm": Folder(ALL, 5, "the chart; needs helm, but for its values"),
    "packages": Folder(ALL, 0, "wheels and images, installed and started"),
    "real": Folder(ALL, 0, "Pulsar: what one or two brokers do with and without a gateway"),
    "apache_kafka": Folder(
        ALL, 30, "Kafka: what brokers do with and without a gateway; attacks on a closed gateway"
    ),
    "apache_tubemq": Folder(ALL, 0, "TubeMQ: what servers do with and without a gateway"),
    "clients": Folder(ALL, 0, "programs that tests use as clients"),
    "oracle": Folder(ALL, 10, "brokers' own decoders check what the gateway sends"),
    "faults": Folder(ALL, 0, "brokers that fail"),
    "matrix": Folder(ALL, 0, "tests with clients, in all configurations"),
    "shaping": Folder(ALL, 0, "limits under load"),
    "soak": Folder(ALL, 0, "memory under many connections"),
    "kubernetes": Folder(ALL, 0, "the chart and manifests, with Kubernetes' own controllers"),
    "systemd": Folder(ALL, 0, "the systemd units, in a booted system"),
}
"""Every folder of tests that has tests."""


def folder_of(path: Path) -> str:
    """Return the name of the folder of `FOLDERS` that has a file. Raises UsageError for a file in
    no such folder, so that no test is left out of all tiers."""
    name = path.relative_to(TESTS).parts[0]
    if name not in FOLDERS:
        raise pytest.UsageError(f"tests/{name} has no tier: add it to FOLDERS in {__name__}")
    return name


def tier_of(item: pytest.Item) -> str:
    """Return the tier of a test."""
    marker = item.get_closest_marker("tier")
    if marker is None:
        return FOLDERS[folder_of(item.path)].tier
    (tier,) = marker.args
    if tier not in (TEST, ALL):
        raise pytest.UsageError(f"{item.nodeid}: a marker says `test` or `all`, not {tier}")
    return str(tier)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--tier", choices=TIERS, help="run the tests of this tier and those below it")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Pass over folders without a test of the tier, which saves up to half a minute."""
    chosen = config.getoption("--tier")
    if chosen in (CHECK, TEST) and collection_path.parent == TESTS:
        found = FOLDERS.get(collection_path.name)
        return True if found and _is_above(found, chosen) else None
    return None


def _is_above(folder: Folder, chosen: str) -> bool:
    """Return whether a folder has no test of a tier."""
    return folder.tier != CHECK if chosen == CHECK else not folder.budget


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests of higher tiers."""
    chosen = config.getoption("--tier")
    here = [it for it in items if it.nodeid.startswith("tests/")]
    tiers = {it: TIERS.index(tier_of(it)) for it in here}
    if chosen is None:
        return
    highest = TIERS.index(chosen)
    if above := [it for it in here if tiers[it] > highest]:
        config.hook.pytest_deselected(items=above)
        left_out = set(above)
        items[:] = [it for it in items if it not in left_out]
