"""The audit, as a real client causes its lines."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pulsar as client_library  # type: ignore[import-untyped, unused-ignore]
import pytest

from tests.real.brokers.tokens import Authority
from tests.real.clients import fresh_topic, wait_until
from tests.real.fixtures import Connect, Reach, StartGateway
from tests.real.gateways import Plans
from tests.support.sandbox import Sandbox

pytestmark = pytest.mark.gateway_only

LINE = {"listener": "clients", "method": "token"}


def lines(file: Path) -> list[dict[str, Any]]:
    """Return what is written; the file is made at its first line."""
    if not file.exists():
        return []
    return [json.loads(line) for line in file.read_text().splitlines()]


@pytest.mark.parametrize("principals", ["plain", "masked", "pseudonymous"])
def test_ends_and_denials_are_written_without_credentials(
    principals: str,
    sandbox_auth: Sandbox,
    gateway: StartGateway,
    plans: Plans,
    reach: Reach,
    connect: Connect,
    authority: Authority,
    tmp_path: Path,
) -> None:
    rules, file = tmp_path / "rules.yaml", tmp_path / "audit.jsonl"
    rules.write_text("version: 1\nrules: [{id: r, match: {principal: bob}, allow: lookup}]\n")
    plan = replace(plans.of("verify"), rules=rules, access="closed", unknown="mask")
    plan = replace(plan, more={"audit": {"file": str(file)}, "log": {"principals": principals}})
    url = reach(sandbox_auth, through=gateway(sandbox_auth, plan)).url
    token, wrong = authority.token("bob"), authority.expired("eve")
    client = connect(url, token)
    with pytest.raises(client_library.AuthorizationError):
        client.create_producer(fresh_topic())
    client.close()
    with pytest.raises(client_library.PulsarException):
        connect(url, wrong, patience=1).create_producer(fresh_topic())
    wait_until(lambda: {"client_closed", "authentication_failed"} <= reasons(file))
    written = lines(file)
    (denial,) = [it for it in written if it["event"] == "denial"]
    assert denial.items() >= (LINE | {"right": "produce", "rule": None}).items()
    named = {it["principal"] for it in written if it.get("reason") == "client_closed"}
    assert (named == {"bob"}) == (principals == "plain")
    assert denial["principal"] in named
    text = file.read_text()
    assert token not in text
    assert wrong not in text


def reasons(file: Path) -> set[str]:
    return {it["reason"] for it in lines(file) if it["event"] == "connection"}
