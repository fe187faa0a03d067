"""Versions and logins."""

from __future__ import annotations

import base64
import json
import struct

import pytest

from gateway.errors import PeerError
from gateway.lab.kafka.codes import Error, Key
from gateway.lab.kafka.connection import HANDLERS
from gateway.lab.kafka.users import Users
from gateway.wire.kafka import frames
from gateway.wire.kafka.versions import UNSUPPORTED_VERSION, unsupported
from tests.unit.lab.kafka.playbook import NOW, Body, Brokers, Client, known_api, request

SOFTWARE: Body = {"ClientSoftwareName": "me", "ClientSoftwareVersion": "1.0"}
RIGHT = b"\0amy\0secret"


def plain() -> Client:
    return Brokers(Users({"amy": "secret", "bob": "other"})).client()


def bearer() -> Client:
    return Brokers(Users(unsecured_tokens=True)).client()


def token(**claims: object) -> bytes:
    """Return the first message of OAUTHBEARER with an unsecured token."""
    parts = (
        base64.urlsafe_b64encode(json.dumps(it).encode()).rstrip(b"=")
        for it in ({"alg": "none"}, claims)
    )
    return b"n,,\1auth=Bearer " + b".".join(parts) + b".\1\1"


async def login(client: Client, mechanism: str, message: bytes) -> Body:
    told = await client.ask(Key.SASL_HANDSHAKE, Mechanism=mechanism)
    assert told["ErrorCode"] == Error.NONE
    return await client.ask(Key.SASL_AUTHENTICATE, AuthBytes=message)


# -- versions ----------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(5))
async def test_what_is_served_is_offered_and_nothing_else(client: Client, version: int) -> None:
    told = await client.ask(Key.API_VERSIONS, version, **SOFTWARE)
    assert [it["ApiKey"] for it in told["ApiKeys"]] == sorted(HANDLERS)
    assert told["ErrorCode"] == Error.NONE


async def test_old_versions_of_produce_are_named_for_librdkafka(client: Client) -> None:
    told = await client.ask(Key.API_VERSIONS, **SOFTWARE)
    assert told["ApiKeys"][0] == {"ApiKey": Key.PRODUCE, "MinVersion": 0, "MaxVersion": 13}


async def test_a_version_that_is_too_new_is_answered_as_version_0(client: Client) -> None:
    answer = await client.send(request(Key.API_VERSIONS, 99, 7, b""))
    assert answer is not None
    assert frames.correlation(answer) == 7
    assert answer[8:] == unsupported()
    assert struct.unpack_from(">h", answer, 8) == (UNSUPPORTED_VERSION,)


async def test_software_of_an_improper_name_is_an_invalid_request(client: Client) -> None:
    told = await client.ask(Key.API_VERSIONS, **SOFTWARE | {"ClientSoftwareName": "-"})
    assert told["ErrorCode"] == Error.INVALID_REQUEST


@pytest.mark.parametrize(
    "frame",
    [
        request(Key.METADATA, 99, 1, b""),
        request(Key.PRODUCE, 2, 1, b""),
        request(28, 3, 1, b""),
        request(Key.METADATA, 1, 1, b"\0"),
        b"\0\0\0\1\0",
    ],
    ids=["too new", "too old", "not served", "torn", "no head"],
)
async def test_what_is_not_offered_ends_the_connection(client: Client, frame: bytes) -> None:
    with pytest.raises(PeerError):
        await client.send(frame)


# -- logins ------------------------------------------------------------------------------------


async def test_a_password_makes_a_principal() -> None:
    client = plain()
    told = await login(client, "PLAIN", RIGHT)
    assert told["ErrorCode"] == Error.NONE
    assert client.session.principal == "amy"
    assert (await client.ask(Key.METADATA, Topics=None))["Brokers"]


async def test_a_wrong_password_is_answered_like_an_unknown_user() -> None:
    answers = []
    for message in (b"\0amy\0wrong", b"\0eve\0secret"):
        client = plain()
        answers.append(await login(client, "PLAIN", message))
        assert client.session.is_ended
    assert answers[0] == answers[1]
    assert answers[0]["ErrorCode"] == Error.SASL_AUTHENTICATION_FAILED


@pytest.mark.parametrize("message", [b"bob\0amy\0secret", b"amy\0secret", b"", b"\0amy\0", b"\0\0"])
async def test_messages_of_plain_that_name_nobody_are_refused(message: bytes) -> None:
    told = await login(plain(), "PLAIN", message)
    assert told["ErrorCode"] == Error.SASL_AUTHENTICATION_FAILED


async def test_a_mechanism_that_is_not_there_is_refused_with_those_that_are() -> None:
    client = plain()
    told = await client.ask(Key.SASL_HANDSHAKE, Mechanism="SCRAM-SHA-256")
    assert told == {"ErrorCode": Error.UNSUPPORTED_SASL_MECHANISM, "Mechanisms": ["PLAIN"]}
    assert client.session.is_ended


async def test_nothing_is_served_before_the_login() -> None:
    client = plain()
    await client.ask(Key.API_VERSIONS, **SOFTWARE)
    with pytest.raises(PeerError, match="before the login"):
        await client.ask(Key.METADATA, Topics=None)


async def test_a_login_without_a_handshake_is_refused() -> None:
    client = plain()
    told = await client.ask(Key.SASL_AUTHENTICATE, AuthBytes=RIGHT)
    assert told["ErrorCode"] == Error.ILLEGAL_SASL_STATE
    assert client.session.is_ended


async def test_behind_an_old_handshake_messages_have_no_heads() -> None:
    client = plain()
    await client.ask(Key.SASL_HANDSHAKE, 0, Mechanism="PLAIN")
    assert await client.send(frames.SIZE.pack(len(RIGHT)) + RIGHT) == bytes(4)
    assert client.session.principal == "amy"
    assert (await client.ask(Key.METADATA, Topics=None))["Brokers"]


async def test_behind_an_old_handshake_a_failure_ends_the_connection() -> None:
    client = plain()
    await client.ask(Key.SASL_HANDSHAKE, 0, Mechanism="PLAIN")
    with pytest.raises(PeerError, match="failed"):
        await client.send(frames.SIZE.pack(3) + b"\0a\0")


async def test_a_token_makes_its_subject_the_principal() -> None:
    client = bearer()
    told = await login(client, "OAUTHBEARER", token(sub="amy", exp=NOW * 2))
    assert told["ErrorCode"] == Error.NONE
    assert client.session.principal == "amy"


@pytest.mark.parametrize(
    "message",
    [
        token(sub="amy", exp=1),
        token(sub="amy"),
        token(sub=7, exp=NOW * 2),
        token(exp=NOW * 2),
        token(sub="amy", exp=NOW * 2).replace(b".\1", b".c2ln\1"),
        b"n,,\1auth=Bearer a.b.\1\1",
        b"n,,\1\1",
        b"",
    ],
    ids=["expired", "endless", "no text", "nobody", "signed", "no JSON", "none", "empty"],
)
async def test_a_token_that_is_not_good_fails_at_the_second_message(message: bytes) -> None:
    client = bearer()
    told = await login(client, "OAUTHBEARER", message)
    assert told["ErrorCode"] == Error.NONE
    assert b"invalid_token" in told["AuthBytes"]
    told = await client.ask(Key.SASL_AUTHENTICATE, AuthBytes=b"\1")
    assert told["ErrorCode"] == Error.SASL_AUTHENTICATION_FAILED
    assert client.session.principal == ""


async def test_a_login_that_expires_is_followed_by_another() -> None:
    client = Brokers(Users({"amy": "secret"}, lifetime=60)).client()
    told = await login(client, "PLAIN", RIGHT)
    assert told["SessionLifetimeMs"] == 60_000
    assert client.session.expires == NOW + 60
    client.session.expires = NOW
    with pytest.raises(PeerError, match="expired"):
        await client.ask(Key.METADATA, Topics=None)
    await login(client, "PLAIN", RIGHT)
    assert (await client.ask(Key.METADATA, Topics=None))["Brokers"]


async def test_nobody_logs_in_again_as_somebody_else() -> None:
    client = plain()
    await login(client, "PLAIN", RIGHT)
    with pytest.raises(PeerError, match="somebody else"):
        await login(client, "PLAIN", b"\0bob\0other")


async def test_requests_are_remembered_with_who_sent_them() -> None:
    brokers = Brokers(Users({"amy": "secret"}))
    client = brokers.client(2, number=5)
    await login(client, "PLAIN", RIGHT)
    await client.ask(Key.METADATA, 9, Topics=None)
    assert [(it.api, it.version, it.principal) for it in brokers.requests] == [
        ("SaslHandshake", 1, ""),
        ("SaslAuthenticate", 2, ""),
        ("Metadata", 9, "amy"),
    ]
    assert {(it.connection, it.node, it.client) for it in brokers.requests} == {(5, 2, "me")}


def test_users_show_no_password() -> None:
    assert "secret" not in repr(Users({"amy": "secret"}))


def test_the_apis_that_are_served_have_these_names() -> None:
    for key in HANDLERS:
        words = Key(key).name.replace("_", "").lower()
        assert known_api(key).name.lower() == words
