"""A real broker accepts the gateway's own credential, and proves that it knows the password."""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from gateway.wire.contract import Credential
from gateway.wire.kafka.sasl.client import chosen, client
from gateway.wire.kafka.sasl.handshake import (
    SASL_AUTHENTICATION_FAILED,
    UNSUPPORTED_SASL_MECHANISM,
    ask_for,
    bare,
    read_answer,
    read_bare,
    read_offer,
    show,
)
from tests.apache_kafka.broker import Kafka
from tests.apache_kafka.connection import Connection
from tests.apache_kafka.secured import MECHANISMS, SASL, USERS
from tests.real.artifacts import Artifacts
from tests.real.brokers.jars import Say
from tests.real.fixtures import or_skip

pytestmark = pytest.mark.real


def _token(*, expires: int) -> Credential:
    """Return a token without a signature, which this broker takes."""
    parts = ({"alg": "none"}, {"sub": "alice", "iat": 0, "exp": expires})
    encoded = (urlsafe_b64encode(json.dumps(it).encode()).rstrip(b"=") for it in parts)
    return Credential("token", b".".join(encoded) + b".")


RIGHT = {it: Credential("basic", b"alice:se:cret") for it in MECHANISMS} | {
    "OAUTHBEARER": _token(expires=2**32)
}
WRONG = {it: Credential("basic", b"alice:secret") for it in MECHANISMS} | {
    "OAUTHBEARER": _token(expires=1)
}


@pytest.fixture(scope="module")
def broker(artifacts: Artifacts, say: Say) -> Iterator[Kafka]:
    folder = artifacts.directory("kafka-sasl")
    made = or_skip(lambda say: Kafka(folder, say, SASL, USERS), say)
    made.start()
    yield made
    made.stop()


@pytest.fixture
def connection(broker: Kafka) -> Iterator[Connection]:
    made = Connection(broker.port)
    yield made
    made.close()


class RefusedError(Exception):
    """A broker refuses a credential, by this error."""


def _show(mechanism: str, credential: Credential, ask: Callable[[bytes], bytes]) -> None:
    """Show a credential, token by token. Raises what `ask` does, and PeerError."""
    proving = client(mechanism, credential)
    token = next(proving)
    with suppress(StopIteration):
        while True:
            token = proving.send(ask(token))


def _in_requests(connection: Connection, version: int) -> Callable[[bytes], bytes]:
    def ask(token: bytes) -> bytes:
        found = read_answer(version, connection.ask(show(token, version, 7, b"gateway")))
        if found.error:
            raise RefusedError(found.error)
        return found.data

    return ask


def _bare(connection: Connection) -> Callable[[bytes], bytes]:
    return lambda token: read_bare(connection.ask(bare(token)))


@pytest.mark.parametrize("version", [0, 1, 2])
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_broker_accepts_our_credential(
    connection: Connection, mechanism: str, version: int
) -> None:
    offer = read_offer(1, connection.ask(ask_for(mechanism, 1, 7, b"gateway")))
    assert offer.error == 0
    assert set(offer.mechanisms) == set(MECHANISMS)
    _show(mechanism, RIGHT[mechanism], _in_requests(connection, version))


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_broker_refuses_another_one(connection: Connection, mechanism: str) -> None:
    connection.ask(ask_for(mechanism, 1, 7, b"gateway"))
    with pytest.raises(RefusedError, match=str(SASL_AUTHENTICATION_FAILED)):
        _show(mechanism, WRONG[mechanism], _in_requests(connection, 1))


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_broker_takes_bare_tokens(connection: Connection, mechanism: str) -> None:
    assert read_offer(0, connection.ask(ask_for(mechanism, 0, 7, b"gateway"))).error == 0
    _show(mechanism, RIGHT[mechanism], _bare(connection))


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_broker_closes_on_a_wrong_bare_token(connection: Connection, mechanism: str) -> None:
    connection.ask(ask_for(mechanism, 0, 7, b"gateway"))
    with pytest.raises(EOFError):
        _show(mechanism, WRONG[mechanism], _bare(connection))


def test_a_broker_says_what_it_has(connection: Connection) -> None:
    offer = read_offer(1, connection.ask(ask_for("GSSAPI", 1, 7, None)))
    assert offer.error == UNSUPPORTED_SASL_MECHANISM
    assert chosen(RIGHT["PLAIN"], offer.mechanisms, plainly=False) == "SCRAM-SHA-512"
