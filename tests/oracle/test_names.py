"""The gateway reads each topic name as all brokers do, or refuses it."""

from __future__ import annotations

from random import Random

import pytest

from gateway.wire.pulsar.topics import named

from .names import any_name, odd_name
from .oracle import Oracles, Reading

_SPELLINGS = (
    "orders",
    "orders/",
    "/orders",
    "//orders//",
    "t/n/x",
    "t/n/x/",
    "t/n/x//",
    "/t/n/x",
    "t//x",
    "t/n/x/y",
    "persistent://t/n/x",
    "PERSISTENT://t/n/x",
    "per\u017fistent://t/n/x",
    "non-persistent://t/n/x",
    "persistent://t/c/n/x",
    "persistent://t/n/a/b/c",
    "persistent://t/n/x://",
    "persistent://t/n/",
    "persistent:///x",
    "topic://t/n/x",
    "topic://t/n/x/y",
    "TOPIC://t/n/x",
    "segment://t/n/x/0000-7fff-1",
    "segment://t/n/x/0-7fff-01",
    "segment://t/n/x/7fff-0000-1",
    "orders-partition-0",
    "orders-partition-00",
    "orders-partition-1-partition-2",
    "orders-partition-2147483648",
    "orders-partition-\u0663",
    "-partition-1",
    "pulsar/system/x",
    "persistent://pulsar//system/x",
    "../../x",
    "t/n/ ",
    "t/n/\u00a0",
    "t/n/\u3000",
    "t/n/a\x00b",
    "t\n/n/x",
    "",
    "/",
)


def _names() -> list[str]:
    rng = Random(1)
    drawn = [odd_name(rng) for _ in range(30_000)] + [any_name(rng) for _ in range(3_000)]
    return sorted({*_SPELLINGS, *(name.decode(errors="ignore") for name in drawn)})


@pytest.fixture(scope="module")
def readings(oracles: Oracles) -> dict[str, tuple[Reading, ...]]:
    names = _names()
    return dict(zip(names, oracles.names([name.encode() for name in names]), strict=True))


def test_a_name_is_read_as_by_every_broker_that_accepts_it(
    readings: dict[str, tuple[Reading, ...]],
) -> None:
    accepted = 0
    for name, understood in readings.items():
        topic = named(name)
        if topic is None:
            continue
        accepted += 1
        for reading in understood:
            if "ex" not in reading:
                read = (reading["full"], reading["tenant"], reading["namespace"])
                assert read == (topic.name, topic.tenant, topic.namespace), name
                assert (topic.partition is not None) >= (reading["partition"] >= 0), name
                if reading["domain"] != "segment":
                    assert reading["base"] == topic.whole, name
    assert accepted > 1000


def test_a_name_that_no_broker_accepts_is_refused(
    readings: dict[str, tuple[Reading, ...]],
) -> None:
    refused = [name for name, them in readings.items() if all("ex" in it for it in them)]
    assert len(refused) > 1000
    assert [name for name in refused if named(name) is not None] == []


def test_a_name_that_all_brokers_read_alike_is_accepted(
    readings: dict[str, tuple[Reading, ...]],
) -> None:
    """Except partitions of a topic without a name, or with digits of other scripts."""
    alike = [
        name
        for name, them in readings.items()
        if len({it.get("full") for it in them}) == 1 and "ex" not in them[0]
    ]
    assert len(alike) > 1000
    refused = [name for name in alike if named(name) is None]
    assert [name for name in refused if not _is_odd_partition(name)] == []


def _is_odd_partition(name: str) -> bool:
    base, _, number = name.rpartition("-partition-")
    return base == "" or base.endswith("/") or (number.isdecimal() and not number.isascii())
