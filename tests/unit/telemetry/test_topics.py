"""A topic's name, taken apart."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.figures import OTHER
from gateway.telemetry.topics import TopicName, parsed


@pytest.mark.parametrize(
    ("name", "tenant", "namespace", "full"),
    [
        ("persistent://t/n/x", "t", "n", "persistent://t/n/x"),
        ("non-persistent://t/n/x-partition-3", "t", "n", "non-persistent://t/n/x-partition-3"),
        ("persistent://t/c/n/x", "t", "c/n", "persistent://t/c/n/x"),
        ("persistent://t/c/n/x/y/z", "t", "c/n", "persistent://t/c/n/x/y/z"),
        ("x", "public", "default", "persistent://public/default/x"),
        ("t/n/x", "t", "n", "persistent://t/n/x"),
        ("t/x", "", "", "t/x"),
        ("a/b/c/d", "", "", "a/b/c/d"),
        ("persistent://t/n/", "", "", "persistent://t/n/"),
        ("persistent://x", "", "", "persistent://x"),
        ("://", "", "", "://"),
        ("", "", "", ""),
        (OTHER, "", "", OTHER),
    ],
)
def test_names_have_the_parts_that_pulsar_sees(
    name: str, tenant: str, namespace: str, full: str
) -> None:
    assert parsed(name) == TopicName(tenant, namespace, full)


def test_a_name_without_end_is_cut() -> None:
    assert all(len(part) <= 512 for part in parsed("persistent://" + "/".join(["x" * 9999] * 3)))


@given(st.text())
def test_no_name_fails(name: str) -> None:
    assert all(isinstance(part, str) for part in parsed(name))
