"""Everybody that is asked over HTTP is asked once, and what they answer is told."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trio

from gateway.config import model
from gateway.doctor import issuers
from gateway.doctor.finding import Finding, Status
from tests.support.agent import Agent, serving
from tests.support.issuer import CONFIGURATION, KEYS, Issuer, SigningKey, configuration, whole


def configured(
    token: dict[str, Any] | None = None,
    oauth2: dict[str, Any] | None = None,
    opa: dict[str, Any] | None = None,
) -> model.Configuration:
    listener: dict[str, Any] = {"name": "edge", "bind": "127.0.0.1:0", "cluster": "main"}
    if token is not None:
        listener["identity"] = {"mode": "verify", "token": token}
    cluster: dict[str, Any] = {"brokers": "pulsar://127.0.0.1:1"}
    if oauth2 is not None:
        cluster["credential"] = {"oauth2": oauth2}
    whole: dict[str, Any] = {"version": 1, "listeners": [listener], "clusters": {"main": cluster}}
    return model.Configuration.model_validate(whole | ({} if opa is None else {"opa": opa}))


async def found(**settings: Any) -> Finding:
    (finding,) = await issuers.examine(configured(**settings))
    return finding


@pytest.fixture
async def issuer(nursery: trio.Nursery) -> Issuer:
    issuer = Issuer(SigningKey("one"), SigningKey("two"))
    await nursery.start(issuer.serve)
    return issuer


@pytest.fixture
def agent() -> Iterator[Agent]:
    agent = Agent(lambda _: False)
    with serving(agent):
        yield agent


def test_nobody_is_asked_where_nobody_is_named() -> None:
    assert not issuers.has_any(configured())


async def test_keys_of_a_url_are_told(issuer: Issuer) -> None:
    finding = await found(token={"jwks_url": issuer.keys_url})
    assert finding == Finding(f"keys of {issuer.keys_url}", Status.OK, "2 usable: one, two")


async def test_keys_that_are_discovered_are_told(issuer: Issuer) -> None:
    issuer.answers[CONFIGURATION] = whole(configuration(issuer.url, issuer.keys_url))
    finding = await found(token={"issuer": issuer.url, "discovery": True})
    assert (finding.status, finding.check) == (Status.OK, f"keys of {issuer.url}")


async def test_what_is_no_key_set_fails(issuer: Issuer) -> None:
    issuer.answers[KEYS] = whole(b"<html>")
    finding = await found(token={"jwks_url": issuer.keys_url})
    assert (finding.status, finding.detail) == (
        Status.FAIL,
        "the answer holds no JSON Web Key Set",
    )
    assert finding.remedy


async def test_an_issuer_without_an_answer_fails() -> None:
    finding = await found(token={"jwks_url": "http://127.0.0.1:1/keys"})
    assert finding.status is Status.FAIL
    assert finding.detail.startswith("http://127.0.0.1:1/keys: ")


@pytest.mark.parametrize(
    ("said", "status", "detail"),
    [
        (b'{"access_token": "a", "expires_in": 60}', Status.OK, "given, for 60 s"),
        (b"{}", Status.FAIL, "the issuer's answer holds no token"),
    ],
    ids=["given", "not given"],
)
async def test_an_own_token_is_tried(
    issuer: Issuer, tmp_path: Path, said: bytes, status: Status, detail: str
) -> None:
    (tmp_path / "secret").write_text("s")
    issuer.answers["/token"] = whole(said)
    finding = await found(
        oauth2={
            "token_url": f"{issuer.url}/token",
            "client_id": "gateway",
            "client_secret_file": str(tmp_path / "secret"),
        }
    )
    assert (finding.check, finding.status) == ("own token for main", status)
    assert finding.detail == detail


async def test_the_policy_agent_is_asked(agent: Agent) -> None:
    finding = await found(opa={"url": agent.url})
    assert finding.status is Status.OK
    assert finding.detail == "answers: gateway-doctor may not administer"
    assert agent.asked == [{"action": "administer", "principal": "gateway-doctor"}]


async def test_a_policy_agent_that_answers_nonsense_fails(agent: Agent) -> None:
    agent.decide = lambda _: {"allow": "perhaps"}
    finding = await found(opa={"url": agent.url})
    assert finding.status is Status.FAIL
    assert finding.detail == "the policy's result is neither true nor false"
