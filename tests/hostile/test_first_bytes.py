"""The first bytes of an unknown client, and how the gateway ends its connection."""

from __future__ import annotations

import random
import struct

import pytest

from gateway.wire.contract import EndReason
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand, ServerError
from gateway.wire.pulsar.frames import Kind
from tests.support.frames import command, data, frame, group, number, simple

from .peers import CONNECT, Client, Closed
from .process import LISTENERS, Gateway

HANDSHAKE_FRAME = 64 * 1024
everywhere = pytest.mark.parametrize("listener", LISTENERS)


@pytest.fixture(scope="module")
def running(hasty: Gateway) -> Gateway:
    return hasty


DEEP = b"\x0b" * 30_000
"""Nested protobuf groups that never end."""

NESTED = data(2, b"")
for _ in range(2_000):
    NESTED = data(2, NESTED)

VIOLATIONS = {
    "a frame of no bytes": struct.pack(">I", 0),
    "a frame of one byte": struct.pack(">IB", 1, 0),
    "a frame without a command": struct.pack(">II", 4, 0),
    "a command larger than its frame": frame(b"\x08\x02", size=1000),
    "a command of 4 GiB": frame(b"\x08\x02", size=0xFFFFFFFF),
    "no protobuf": frame(bytes(range(200, 250))),
    "a field that has no end": frame(number(1, 2) + b"\x12\xff\xff\xff\xff\x0f"),
    "a varint that has no end": frame(b"\x08" + b"\xff" * 50),
    "groups within groups": frame(number(1, 2) + DEEP),
    "groups in CONNECT": frame(command(2, DEEP)),
    "an end without a group": frame(number(1, 2) + b"\x0c"),
    "CONNECT without its fields": frame(number(1, 2)),
    "CONNECT with the fields of another": frame(number(1, 2) + data(Kind.PING, b"")),
    "the type of CONNECT and of another": frame(command(2, data(1, b"x")) + number(1, 18)),
    "no type": frame(data(2, data(1, b"x"))),
    "a type of 2^63": frame(number(1, 1 << 63)),
}

TOO_LARGE = {
    "HTTP": b"GET / HTTP/1.1\r\nHost: gateway\r\n\r\n",
    "TLS": bytes.fromhex("16030101fc010001f80303") + bytes(500),
    "SSH": b"SSH-2.0-OpenSSH_9.2\r\n",
    "a Kafka request": struct.pack(">Ihhih", 1 << 20, 18, 3, 1, -1),
    "all bits": b"\xff" * 8,
    "2 GiB": struct.pack(">I", 1 << 31),
    "one byte too much": struct.pack(">I", HANDSHAKE_FRAME - 3),
    "a large credential": simple(
        Kind.CONNECT, client_version="x", auth_method_name="token", auth_data=b"x" * 66_000
    ),
}


@everywhere
@pytest.mark.parametrize("name", VIOLATIONS)
def test_violations_before_connect_get_an_error(gateway: Gateway, listener: str, name: str) -> None:
    with (
        gateway.expecting(listener, EndReason.CLIENT_VIOLATION),
        Client(gateway.ports[listener]) as client,
    ):
        client.say(VIOLATIONS[name])
        (response,) = client.hear_all()
        assert response.type == BaseCommand.ERROR
        assert response.error.error == ServerError.UnsupportedVersionError


@everywhere
@pytest.mark.parametrize("name", TOO_LARGE)
def test_a_first_frame_above_the_bound_gets_an_error(
    gateway: Gateway, listener: str, name: str
) -> None:
    with (
        gateway.expecting(listener, EndReason.FRAME_TOO_LARGE),
        Client(gateway.ports[listener]) as client,
    ):
        client.say(TOO_LARGE[name])
        (response,) = client.hear_all()
        assert response.type == BaseCommand.ERROR


@everywhere
def test_random_first_bytes_end_the_connection(gateway: Gateway, listener: str) -> None:
    noise = random.Random(1)
    rounds = 60
    reasons = EndReason.FRAME_TOO_LARGE, EndReason.CLIENT_VIOLATION, EndReason.CLIENT_CLOSED
    with gateway.expecting(listener, *reasons, number=2 * rounds):
        for _ in range(rounds):
            size = noise.randrange(1, 3000)
            with Client(gateway.ports[listener]) as client:
                client.say(noise.randbytes(size))
            with Client(gateway.ports[listener]) as client:
                client.say(struct.pack(">II", size, noise.randrange(size)) + noise.randbytes(size))


def test_any_other_first_command_is_refused(gateway: Gateway) -> None:
    kinds = [kind for kind in Kind if kind != Kind.CONNECT]
    with gateway.expecting("passing", EndReason.CLIENT_VIOLATION, number=len(kinds)):
        for kind in kinds:
            with Client(gateway.ports["passing"]) as client:
                client.say(simple(kind))
                assert [response.type for response in client.hear_all()] == [BaseCommand.ERROR]


@everywhere
def test_a_connect_with_changed_bytes_does_no_harm(gateway: Gateway, listener: str) -> None:
    """The gateway ends the connection, or forwards a CONNECT that a broker may get."""
    noise = random.Random(2)
    good = simple(
        Kind.CONNECT,
        client_version="a client",
        auth_method_name="token",
        auth_data=b"secret",
        protocol_version=20,
        proxy_to_broker_url="pulsar://elsewhere:6650",
    )
    rounds = 60
    with gateway.expecting(listener, *EndReason, number=rounds):
        for _ in range(rounds):
            broken = bytearray(good)
            for _ in range(noise.randrange(1, 4)):
                broken[noise.randrange(4, len(broken))] = noise.randrange(256)
            with Client(gateway.ports[listener]) as client:
                client.say(bytes(broken))


@everywhere
@pytest.mark.parametrize("said", [b"", CONNECT[:2], CONNECT[:9], CONNECT[:-1]])
def test_a_client_may_leave_while_opening(gateway: Gateway, listener: str, said: bytes) -> None:
    with gateway.expecting(listener, EndReason.CLIENT_CLOSED, number=2):
        with Client(gateway.ports[listener]) as client:
            client.say(said)
        client = Client(gateway.ports[listener])
        client.say(said)
        client.reset()


def test_a_client_that_never_completes_connect_times_out(gateway: Gateway) -> None:
    """All wait at the same time, and each reaches its own deadline."""
    for listener in LISTENERS:
        said = [b"", CONNECT[:1], CONNECT[:3], CONNECT[:8], CONNECT[:-1]]
        with gateway.expecting(listener, EndReason.HANDSHAKE_TIMEOUT, number=len(said)):
            clients = [Client(gateway.ports[listener]) for _ in said]
            for client, begin in zip(clients, said, strict=True):
                client.say(begin)
            for client in clients:
                assert [response.type for response in client.hear_all()] == [BaseCommand.ERROR]
                client.close()


def test_single_bytes_do_not_extend_the_handshake_deadline(gateway: Gateway) -> None:
    """The deadline covers the whole frame, not each byte."""
    long = simple(Kind.CONNECT, client_version="x" * 60_000)
    with gateway.expecting("passing", EndReason.HANDSHAKE_TIMEOUT):
        client = Client(gateway.ports["passing"])
        client.sock.settimeout(0.05)
        heard = b""
        for byte in long:
            client.say(bytes([byte]))
            try:
                heard = client.sock.recv(1)
            except TimeoutError:
                continue
            break
        assert heard == b"\0", "an ERROR begins with its size"
        client.close()


def test_a_connect_may_come_byte_by_byte(gateway: Gateway) -> None:
    with (
        gateway.expecting("passing", EndReason.CLIENT_CLOSED),
        Client(gateway.ports["passing"]) as client,
    ):
        client.drip(CONNECT)
        assert client.hear().type == BaseCommand.CONNECTED


def test_a_large_connect_passes(gateway: Gateway) -> None:
    with (
        gateway.expecting("passing", EndReason.CLIENT_CLOSED),
        Client(gateway.ports["passing"]) as client,
    ):
        client.say(simple(Kind.CONNECT, client_version="x", auth_data=b"x" * 60_000))
        assert client.hear().type == BaseCommand.CONNECTED


@pytest.mark.parametrize(
    "name",
    [
        "pulsar://127.0.0.1:22",
        "pulsar://169.254.169.254:80",
        "broker.gw:6650",
        "pulsar://" + "a" * 50_000,
        "pulsar://\0\n\x1b[31m:6650",
        "://",
        "pulsar://[::1",
        "pulsar://" + "aaaaaaaa" * 8 + ".gw:6650",
    ],
)
def test_a_foreign_broker_name_is_refused(gateway: Gateway, name: str) -> None:
    """A client cannot use the gateway to reach other hosts."""
    with (
        gateway.expecting("passing", EndReason.TARGET_REFUSED),
        Client(gateway.ports["passing"]) as client,
    ):
        client.say(simple(Kind.CONNECT, client_version="x", proxy_to_broker_url=name))
        (response,) = client.hear_all()
        assert response.type == BaseCommand.ERROR


@pytest.mark.parametrize(
    "credential",
    [
        b"",
        b"secret",
        b"a.b.c",
        b"." * 30_000,
        b"eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZG1pbiJ9.",
        b"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhZG1pbiJ9.AAAA",
        bytes(range(256)) * 200,
        b"[" * 40_000,
    ],
)
def test_an_invalid_credential_is_refused(gateway: Gateway, credential: bytes) -> None:
    with gateway.expecting("verifying", EndReason.AUTHENTICATION_FAILED, number=2):
        for proxied in ({}, {"original_principal": "admin", "proxy_version": "x"}):
            with Client(gateway.ports["verifying"]) as client:
                client.say(
                    simple(
                        Kind.CONNECT,
                        client_version="x",
                        auth_method_name="token",
                        auth_data=credential,
                        **proxied,
                    )
                )
                (response,) = client.hear_all()
                assert response.error.error == ServerError.AuthenticationError


def test_unknown_fields_in_connect_are_accepted(gateway: Gateway) -> None:
    """Unknown fields and groups are no violation; the masking listener drops them."""
    strange = data(1, b"x") + group(999, number(5, 7)) + data(2000, NESTED)
    for listener in ("passing", "masking"):
        with (
            gateway.expecting(listener, EndReason.CLIENT_CLOSED),
            Client(gateway.ports[listener]) as client,
        ):
            client.say(frame(command(2, strange)))
            assert client.hear().type == BaseCommand.CONNECTED


def test_commands_behind_connect_are_handled_after_the_answer(gateway: Gateway) -> None:
    """Bytes behind CONNECT are not lost, and are not trusted before the response."""
    with gateway.expecting("passing", EndReason.CLIENT_VIOLATION, number=2):
        for nonsense in (CONNECT, bytes(10)):
            with Client(gateway.ports["passing"]) as client:
                client.say(CONNECT + simple(Kind.PING) + nonsense)
                kinds = [response.type for response in client.hear_all()]
                assert kinds[0] == BaseCommand.CONNECTED
                assert kinds[-1] == BaseCommand.ERROR


def test_a_client_that_shuts_down_at_once_is_closed(gateway: Gateway) -> None:
    with gateway.expecting("passing", EndReason.CLIENT_CLOSED):
        client = Client(gateway.ports["passing"])
        client.sock.shutdown(1)
        with pytest.raises(Closed):
            client.hear()
        client.close()
