"""The groups that a greeting begins with."""

from __future__ import annotations

import contextlib
import random
import ssl

import pytest

from gateway.tls import sides
from gateway.tls.greeting import LONGEST, X25519, groups_shared
from gateway.tls.sides import GROUP, LIKED_GROUP
from gateway.tls.stream import Shake
from tests.support.tls import NAME
from tests.unit.tls.samples import House, linked, met, stream_of, trusting

P_256 = 0x0017


def name_group(context: ssl.SSLContext, group: str) -> None:
    """Have a context name one group alone, or skip the test."""
    try:
        context.set_ecdh_curve(group)
    except ssl.SSLError:
        pytest.skip(f"this Python cannot name the group {group}")


def greeting_of(group: str, maximum: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3) -> bytes:
    """Return the first bytes of a client that begins with this group."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.maximum_version = maximum
    name_group(context, group)
    outgoing = ssl.MemoryBIO()
    client = context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname=NAME)
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


@pytest.mark.parametrize(("name", "group"), [(LIKED_GROUP, X25519), (GROUP, P_256)])
def test_a_greeting_tells_what_it_begins_with(name: str, group: int) -> None:
    assert groups_shared(greeting_of(name)) == {group}


def test_older_clients_begin_with_none() -> None:
    assert groups_shared(greeting_of(LIKED_GROUP, ssl.TLSVersion.TLSv1_2)) == frozenset()


def test_a_greeting_that_is_cut_tells_nothing() -> None:
    whole = greeting_of(LIKED_GROUP)
    assert not any(groups_shared(whole[:end]) for end in range(len(whole)))


def test_whatever_is_sent_can_be_read() -> None:
    whole, numbers = greeting_of(LIKED_GROUP), random.Random(1)
    for _ in range(20_000):
        spoilt = bytearray(whole)
        for _ in range(numbers.randint(1, 4)):
            spoilt[numbers.randrange(len(spoilt))] = numbers.choice((0, 1, 255, 22, 51))
        groups_shared(bytes(spoilt))


@pytest.mark.parametrize("group", [LIKED_GROUP, GROUP])
def test_a_client_says_hello_once(house: House, group: str) -> None:
    context = trusting(house)
    name_group(context, group)
    with linked() as (near, far):
        server, client = house.server().stream(near), stream_of(context, far)
        assert client.shake() is Shake.READS
        assert server.shake() is Shake.READS
        assert client.shake() is Shake.DONE
        assert server.shake() is Shake.DONE


def test_clients_are_served_where_python_cannot_name_the_group_they_like(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python 3.11.2, which Debian 12 has, fails with X25519 as others do with what is no group."""
    monkeypatch.setattr(sides, "LIKED_GROUP", "SHA256")
    with met(house.server(), trusting(house)) as (_, client):
        assert client.version == "TLSv1.3"


def test_a_greeting_in_pieces_is_answered_too(house: House) -> None:
    context = trusting(house)
    context.set_ecdh_curve(GROUP)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context.wrap_bio(incoming, outgoing, server_hostname=NAME)
    with linked() as (near, far):
        server, state = house.server().stream(near), Shake.READS
        while state is not Shake.DONE:
            with contextlib.suppress(ssl.SSLWantReadError):
                client.do_handshake()
            for byte in outgoing.read():
                far.send(bytes([byte]))
                state = server.shake()
            incoming.write(far.recv(65536))
    assert server.server_name == NAME


def test_a_greeting_of_many_extensions_tells_nothing() -> None:
    whole = greeting_of(LIKED_GROUP)
    padding = (LONGEST + 1 - (len(whole) - 5)) // 4 + 1
    rest = whole[5:] + bytes.fromhex("fafa0000") * padding
    grown = whole[:3] + len(rest).to_bytes(2, "big") + rest
    assert groups_shared(grown) == frozenset()
