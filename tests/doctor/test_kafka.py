"""The doctor in front of a real Kafka."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from gateway.doctor.command import FAILS, WORKS, doctor
from tests.apache_kafka.broker import HOST, Kafka
from tests.apache_kafka.secured import MECHANISMS, SASL, USERS, users_file
from tests.real.artifacts import Artifacts
from tests.real.brokers.jars import Say
from tests.real.brokers.ports import free_range
from tests.real.fixtures import or_skip

pytestmark = pytest.mark.real


@pytest.fixture
def secured(artifacts: Artifacts, say: Say) -> Iterator[Kafka]:
    """A broker that wants SASL."""

    def make(say: Say) -> Kafka:
        return Kafka(artifacts.directory("kafka-sasl"), say, SASL, USERS)

    made = or_skip(make, say)
    made.start()
    yield made
    made.stop()


def told(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    port: int,
    ids: str,
    password: str | None = None,
) -> tuple[int, str]:
    """Return the command's status and its output, on one line. `ids`: that are declared.
    `password`: of alice, as whom the gateway authenticates at brokers; None: it does not."""
    first = free_range(2)
    listener: dict[str, Any] = {
        "name": "edge",
        "protocol": "kafka",
        "bind": f"{HOST}:{first}",
        "cluster": "main",
        "advertise": {"ports": {"host": HOST, "ids": ids, "first_port": first + 1}},
    }
    data: dict[str, Any] = {
        "version": 1,
        "listeners": [listener],
        "clusters": {"main": {"brokers": f"kafka://{HOST}:{port}"}},
    }
    if password is not None:
        scram = users_file(folder, {"bob": "builder"}, MECHANISMS[1:3])
        own, file = {"username": "alice", "password_file": "password"}, folder / "password"
        file.write_text(password)
        for secret in (scram, file):
            secret.chmod(0o600)
        listener["identity"] = {"mode": "verify", "scram": {"credentials_file": str(scram)}}
        data["clusters"]["main"]["credential"] = {"basic": own}
    path = folder / "gateway.yaml"
    path.write_text(yaml.safe_dump(data))
    status = doctor(path)
    return status, " ".join(capsys.readouterr().out.split())


def test_a_broker_works(kafka: Kafka, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, said = told(tmp_path, capsys, kafka.port, "1")
    assert status == WORKS, said
    at = f"{HOST}:{kafka.port}"
    assert re.search(rf"ok broker {at} speaks Kafka, knows Produce up to \d+, Fetch up to", said)
    assert f"ok metadata at {at} 1 broker, with the ids 1" in said
    assert f"ok advertised {at} allowed, and can be connected to" in said


def test_an_id_without_a_port_is_named(
    kafka: Kafka, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, said = told(tmp_path, capsys, kafka.port, "0")
    assert status == FAILS, said
    assert "FAIL ids at edge no address is declared for 1:" in said
    assert "ids: 0-1" in said


def test_the_port_of_a_controller_is_recognized(
    kafka: Kafka, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, said = told(tmp_path, capsys, kafka.controller, "1")
    assert status == FAILS, said
    assert "it does not offer Produce, Metadata" in said


def test_a_broker_that_wants_sasl_is_told_from_one_that_is_none(
    secured: Kafka, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, said = told(tmp_path, capsys, secured.port, "1")
    assert status == WORKS, said
    at = f"{HOST}:{secured.port}"
    assert f"ok broker {at} speaks Kafka, knows Produce up to " in said
    assert f"skip metadata at {at} not tried: the broker tells nobody" in said


def test_the_credential_is_shown_to_a_broker_that_wants_sasl(
    secured: Kafka, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    at = f"{HOST}:{secured.port}"
    status, said = told(tmp_path, capsys, secured.port, "1", "se:cret")
    assert status == WORKS, said
    assert f"ok gateway at {at} accepts the gateway's credential (SCRAM-SHA-512)" in said
    assert f"ok metadata at {at} 1 broker, with the ids 1" in said
    status, said = told(tmp_path, capsys, secured.port, "1", "wrong")
    assert status == FAILS, said
    assert f"FAIL gateway at {at} the broker does not accept the gateway's credential" in said
