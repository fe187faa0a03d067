"""Real clients authenticate with the gateway's cores of SASL, and understand its refusals."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import aiokafka
import confluent_kafka
import pytest
from aiokafka.abc import AbstractTokenProvider
from confluent_kafka.admin import AdminClient

from gateway.wire.kafka.sasl.exchange import Accepted
from tests.apache_kafka.sasl_server import HOST, TOKEN, Server

ALL = ("basic", "scram", "token")
PATIENCE_S = 20
BY_PASSWORD = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]

Attempt = Callable[[Server, str, str], str]
"""Has a client authenticate at a server by a mechanism, with a password or token. Returns why it
could not; empty: it has, and the server has told it of its broker."""


def librdkafka(server: Server, mechanism: str, secret: str) -> str:
    """By librdkafka, as confluent-kafka brings it along."""
    errors: list[str] = []
    settings: dict[str, Any] = {
        "bootstrap.servers": f"{HOST}:{server.port}",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanisms": mechanism,
        "error_cb": lambda error: errors.append(str(error)),
    }
    if mechanism == "OAUTHBEARER":
        settings["oauth_cb"] = lambda _: (secret, 2**31, "alice", {"traceId": "123"})
    else:
        settings |= {"sasl.username": "alice", "sasl.password": secret}
    admin = AdminClient(settings)
    admin.poll(0)  # which calls `oauth_cb`
    for _ in range(PATIENCE_S * 10):
        try:
            assert len(admin.list_topics(timeout=0.1).brokers) == 1
        except confluent_kafka.KafkaException:
            admin.poll(0)
            refused = [it for it in errors if "_AUTHENTICATION" in it]
            if refused:
                return refused[0]
        else:
            return ""
    raise AssertionError(errors)


class _Token(AbstractTokenProvider):  # type: ignore[misc, unused-ignore]
    def __init__(self, secret: str) -> None:
        self._secret = secret

    async def token(self) -> str:
        return self._secret

    def extensions(self) -> dict[str, str]:
        return {"traceId": "123"}


def aio(server: Server, mechanism: str, secret: str) -> str:
    """By aiokafka."""

    async def work() -> str:
        settings: dict[str, object] = {"sasl_mechanism": mechanism}
        if mechanism == "OAUTHBEARER":
            settings["sasl_oauth_token_provider"] = _Token(secret)
        else:
            settings |= {"sasl_plain_username": "alice", "sasl_plain_password": secret}
        client = aiokafka.AIOKafkaProducer(
            bootstrap_servers=f"{HOST}:{server.port}",
            security_protocol="SASL_PLAINTEXT",
            **settings,
        )
        try:
            await client.start()
        except aiokafka.errors.KafkaError as error:
            return str(error)
        finally:
            await client.stop()
        return ""

    return asyncio.run(asyncio.wait_for(work(), PATIENCE_S))


CLIENTS = pytest.mark.parametrize("attempt", [librdkafka, aio])


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server(ALL)
    yield made
    made.close()


@CLIENTS
@pytest.mark.parametrize("mechanism", [*BY_PASSWORD, "OAUTHBEARER"])
def test_a_real_client_is_accepted(server: Server, attempt: Attempt, mechanism: str) -> None:
    assert attempt(server, mechanism, TOKEN if mechanism == "OAUTHBEARER" else "secret") == ""
    assert {(it.mechanism, it.version) for it in server.ended} == {(mechanism, 1)}
    outcome = server.ended[0].outcome
    assert isinstance(outcome, Accepted)
    assert outcome.principal.name == "alice"
    assert dict(outcome.extensions) == ({"traceId": "123"} if mechanism == "OAUTHBEARER" else {})


@CLIENTS
@pytest.mark.parametrize("mechanism", [*BY_PASSWORD, "OAUTHBEARER"])
def test_a_real_client_understands_a_refusal(
    server: Server, attempt: Attempt, mechanism: str
) -> None:
    assert attempt(server, mechanism, "eyJ.a.b") != ""
    assert not [it for it in server.ended if isinstance(it.outcome, Accepted)]
    assert set(server.begun) == {mechanism}


@pytest.mark.parametrize("mechanism", BY_PASSWORD)
def test_a_client_of_bare_tokens_is_accepted(mechanism: str) -> None:
    server = Server(ALL, newest=0)
    assert librdkafka(server, mechanism, "secret") == ""
    assert {(it.mechanism, it.version) for it in server.ended} == {(mechanism, 0)}
    server.close()


@CLIENTS
def test_a_mechanism_that_there_is_not_is_refused(attempt: Attempt) -> None:
    server = Server(("scram",))
    assert attempt(server, "PLAIN", "secret") != ""
    assert (set(server.begun), server.ended) == ({"PLAIN"}, [])
    server.close()
