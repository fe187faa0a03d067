"""Topics of usage records that brokers answer for, and others."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.config import model
from gateway.config.load import build
from gateway.doctor import records
from gateway.doctor.finding import Status
from gateway.identity.credential import NoCredential
from gateway.usage.client import Client
from gateway.usage.sending import UnavailableError

TOPIC = "persistent://ops/usage/records"


def configured(**topic: str) -> model.Configuration:
    found, mistakes = build(
        {
            "version": 1,
            "listeners": [{"name": "clients", "bind": "127.0.0.1:0", "cluster": "main"}],
            "clusters": {"main": {"brokers": "pulsar://127.0.0.1:1"}},
            "usage": {"folder": "usage", **({"topic": topic} if topic else {})},
        },
        Path(),
    )
    assert not mistakes
    assert found is not None
    return found


RECORDS = configured(cluster="main", records=TOPIC)


def test_nothing_is_asked_without_a_topic() -> None:
    assert records.has_any(RECORDS)
    assert not records.has_any(configured())


@pytest.mark.parametrize(("parts", "told"), [(1, "no partitions"), (4, "4 partitions")])
async def test_a_topic_that_brokers_answer_for_is_ok(
    parts: int, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Client, "partitions", lambda _, topic: parts if topic == TOPIC else 0)
    (found,) = await records.examine(RECORDS, NoCredential())
    assert (found.check, found.status) == (f"topic {TOPIC}", Status.OK)
    assert found.detail.endswith(told)


async def test_each_topic_is_asked_for_and_a_reason_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(_: object, topic: str) -> int:
        raise UnavailableError(f"no {topic}")

    monkeypatch.setattr(Client, "partitions", refuse)
    both = configured(cluster="main", records=TOPIC, events=f"{TOPIC}-events")
    found = await records.examine(both, NoCredential())
    assert [(it.status, it.detail) for it in found] == [
        (Status.FAIL, f"no {TOPIC}"),
        (Status.FAIL, f"no {TOPIC}-events"),
    ]
    assert all("proxyRoles" in it.remedy for it in found)


async def test_without_a_credential_nobody_is_asked() -> None:
    (found,) = await records.examine(RECORDS, None)
    assert found.status is Status.SKIP
