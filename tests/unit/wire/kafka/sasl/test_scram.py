"""SCRAM: who is accepted, what a stranger cannot find out, and what a message cannot smuggle."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable

import pytest

from gateway.errors import PeerError
from gateway.wire.contract import Denial, Principal
from gateway.wire.kafka.sasl import scram
from gateway.wire.kafka.sasl.exchange import LARGEST_TOKEN, MALFORMED, Accepted
from gateway.wire.kafka.sasl.scram import (
    ServerFirst,
    check_signature,
    proof,
    read_challenge,
    read_first,
    written_challenge,
    written_first,
)
from gateway.wire.scram import LEAST_ITERATIONS, MOST_ITERATIONS, ScramSecret, scram_keys
from tests.unit.wire.kafka.sasl.doubles import (
    NONCE,
    SHA_256,
    SHA_512,
    WRONG,
    Played,
    SaslServices,
    verified,
)

FIRST = b"n,,n=alice,r=abc"
MECHANISMS = pytest.mark.parametrize("mechanism", [SHA_256, SHA_512])


def knowing(
    mechanism: str = SHA_256, password: bytes = b"secret", first: bytes = FIRST
) -> Callable[[bytes], bytes]:
    """Return a client's answer to a challenge."""

    def response(challenge: bytes) -> bytes:
        said = read_first(first)
        assert said is not None
        found = read_challenge(challenge, said.nonce)
        keys = scram_keys(mechanism, password, found.salt, found.iterations)
        return proof(mechanism, said, challenge, found.nonce, keys)[0]

    return response


def changed(old: bytes, new: bytes) -> Callable[[bytes], bytes]:
    """Return a response in which something else stands than what is right."""

    def response(challenge: bytes) -> bytes:
        right = knowing()(challenge)
        assert old in right
        return right.replace(old, new)

    return response


# -- the vectors of RFC 7677 --

RFC_NONCE = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
RFC_FIRST = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
RFC_CHALLENGE = (
    b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
)
RFC_FINAL = (
    b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
    b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
)
RFC_SIGNATURE = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def test_the_messages_of_the_rfc_are_accepted_and_answered() -> None:
    salt = b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    keys = scram_keys(SHA_256, b"pencil", salt, 4096)
    services = SaslServices()
    services.users["user", SHA_256] = ScramSecret(
        "user", SHA_256, salt, 4096, keys.stored, keys.server
    )
    played = verified(SHA_256, RFC_FIRST, RFC_FINAL, services=services, nonce=RFC_NONCE)
    accepted = Accepted(Principal("user", verified=True), RFC_SIGNATURE)
    assert played == (accepted, [RFC_CHALLENGE])


def test_the_messages_of_the_rfc_are_written() -> None:
    first = written_first("user", "rOprNGfwEbeRWgbNEkqO")
    assert first.header + first.bare == RFC_FIRST
    found = read_challenge(RFC_CHALLENGE, "rOprNGfwEbeRWgbNEkqO")
    keys = scram_keys(SHA_256, b"pencil", found.salt, found.iterations)
    final, signature = proof(SHA_256, first, RFC_CHALLENGE, found.nonce, keys)
    assert final == RFC_FINAL
    check_signature(RFC_SIGNATURE, signature)


# -- who is accepted --


@MECHANISMS
@pytest.mark.parametrize(
    "first",
    [
        FIRST,
        b"y,,n=alice,r=abc",
        b"n,a=alice,n=alice,r=abc",
        b"n,,n=alice,r=abc,other=true",
        b"n,,n=alice,r=a=b=c",
    ],
)
def test_who_knows_the_password_is_accepted_and_told_so(mechanism: str, first: bytes) -> None:
    services = SaslServices()
    played = verified(mechanism, first, knowing(mechanism, first=first), services=services)
    assert isinstance(played.outcome, Accepted)
    assert played.outcome.principal == Principal("alice", verified=True)
    assert played.outcome.data.startswith(b"v=")
    assert played.outcome.credential is None
    assert services.ended == [("alice", True)]


@MECHANISMS
def test_who_does_not_know_it_is_not(mechanism: str) -> None:
    services = SaslServices()
    played = verified(mechanism, FIRST, knowing(mechanism, b"Secret"), services=services)
    assert played.outcome == WRONG
    assert services.ended == [("alice", False)]


def test_a_proof_for_one_mechanism_is_none_for_another() -> None:
    assert verified(SHA_512, FIRST, knowing(SHA_256)).outcome == MALFORMED


def test_a_proof_that_was_seen_is_none_for_another_challenge() -> None:
    seen: list[bytes] = []

    def response(challenge: bytes) -> bytes:
        seen.append(knowing()(challenge))
        return seen[-1]

    verified(SHA_256, FIRST, response)
    later = verified(SHA_256, b"n,,n=alice,r=abd", seen[0])
    assert later.outcome == MALFORMED
    forged = seen[0].replace(b"r=abc", b"r=abd")
    assert verified(SHA_256, b"n,,n=alice,r=abd", forged).outcome == WRONG


@pytest.mark.parametrize(
    ("name", "user"),
    [(b"a=2Cb", "a,b"), (b"a=3Db", "a=b"), (b"a=3D2Cb", "a=2Cb"), ("ä".encode(), "ä")],
)
def test_a_name_is_read_as_it_was_meant(name: bytes, user: str) -> None:
    found = read_first(b"n,,n=" + name + b",r=abc")
    assert found is not None
    assert found.user == user
    assert written_first(user, "abc").bare == found.bare


# -- who is not known --


def _shape(played: Played) -> tuple[Denial, list[str]]:
    """Return what a stranger sees, without the salts."""
    assert isinstance(played.outcome, Denial)
    (said,) = (it.decode() for it in played.challenges)
    nonce, salt, iterations = said.split(",")
    return played.outcome, [nonce, str(len(salt)), iterations]


@MECHANISMS
def test_an_unknown_user_cannot_be_told_from_a_wrong_password(mechanism: str) -> None:
    shown = [
        verified(mechanism, FIRST, knowing(mechanism, b"wrong")),
        verified(mechanism, b"n,,n=carol,r=abc", knowing(mechanism, first=b"n,,n=carol,r=abc")),
    ]
    assert _shape(shown[0]) == _shape(shown[1])
    assert shown[0].challenges != shown[1].challenges


def test_an_unknown_user_has_the_same_salt_each_time_and_no_other_user_has_it() -> None:
    asked = [
        verified(mechanism, b"n,,n=%s,r=abc" % name, b"").challenges[0]
        for mechanism, name in [(SHA_256, b"carol")] * 2 + [(SHA_512, b"carol"), (SHA_256, b"bob")]
    ]
    assert asked[0] == asked[1]
    assert len(set(asked)) == 3


# -- messages of strangers --


@pytest.mark.parametrize(
    "token",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"n,,", id="torn"),
        pytest.param(b"n,,n=alice", id="no nonce"),
        pytest.param(b"n,,n=alice,r=", id="an empty nonce"),
        pytest.param(b"n,,n=alice,r=a\x7f", id="a nonce that cannot be printed"),
        pytest.param("n,,n=alice,r=ä".encode(), id="a nonce beyond ASCII"),
        pytest.param(b"n,,n=,r=abc", id="no name"),
        pytest.param(b"n,,r=abc,n=alice", id="another order"),
        pytest.param(b"n,n=alice,r=abc", id="a comma less"),
        pytest.param(b"n,,,n=alice,r=abc", id="a comma more"),
        pytest.param(b"n,,n=alice,r=abc,", id="a comma at the end"),
        pytest.param(b"n,,n=alice,,r=abc", id="a comma between"),
        pytest.param(b"n,,n=alice,n=bob,r=abc", id="two names"),
        pytest.param(b"n,,n=al=ice,r=abc", id="an escape that is none"),
        pytest.param(b"n,,n=alice=2c,r=abc", id="an escape in small letters"),
        pytest.param(b"n,,n=al\0ice,r=abc", id="a NUL"),
        pytest.param(b"n,,n=\xff,r=abc", id="a name that is not UTF-8"),
        pytest.param(b"n,a=bob,n=alice,r=abc", id="on behalf of somebody else"),
        pytest.param(b"n,a=,n=alice,r=abc", id="on behalf of nobody"),
        pytest.param(b"p=tls-unique,,n=alice,r=abc", id="bound to the channel"),
        pytest.param(b"x,,n=alice,r=abc", id="bound to something else"),
        pytest.param(b"n,,m=1,n=alice,r=abc", id="what one must know"),
        pytest.param(b"n,,n=alice,r=abc,m=1", id="the same at the end"),
        pytest.param(b"n,,n=alice,r=abc,tokenauth=true", id="a delegation token"),
        pytest.param(b"n,,n=alice,r=abc,x", id="an extension that is none"),
        pytest.param(b"n,,n=alice,r=abc,p=abc", id="a proof too early"),
        pytest.param(b"n,,n=alice,r=abc\n", id="a line"),
        pytest.param(b"n,,n=alice,r=" + b"x" * LARGEST_TOKEN, id="huge"),
        pytest.param(b"," * LARGEST_TOKEN, id="commas alone"),
    ],
)
def test_a_malformed_first_message_is_refused_and_nobody_is_asked(token: bytes) -> None:
    assert verified(SHA_256, token) == (MALFORMED, [])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(b"c=biws", b"c=eSws", id="another header"),
        pytest.param(b"c=biws", b"c=biw", id="a header that is not base64"),
        pytest.param(b"c=biws", b"c=", id="no header"),
        pytest.param(b"c=biws,", b"", id="a field less"),
        pytest.param(b"r=abc", b"r=abd", id="another nonce of the client"),
        pytest.param(NONCE.encode(), b"", id="half of the nonce"),
        pytest.param(NONCE.encode(), b"x" + NONCE.encode()[1:], id="another nonce of ours"),
        pytest.param(b",p=", b",p=A", id="a proof that is not base64"),
        pytest.param(b",p=", b",p=AAAA", id="a longer proof"),
        pytest.param(b",p=", b",x=1,,p=", id="a comma"),
        pytest.param(b",p=", b",p=AAAA,p=", id="two proofs"),
        pytest.param(b",p=", b",P=", id="no proof"),
        pytest.param(b"c=biws", b"c=biws\0", id="a NUL"),
        pytest.param(b"c=biws", b"c=biws\xff", id="no UTF-8"),
    ],
)
def test_a_malformed_second_message_is_refused(old: bytes, new: bytes) -> None:
    services = SaslServices()
    assert verified(SHA_256, FIRST, changed(old, new), services=services).outcome == MALFORMED
    assert services.ended == []


def test_an_extension_that_was_added_on_the_way_spoils_the_proof() -> None:
    assert verified(SHA_256, FIRST, changed(b",p=", b",x=1,p=")).outcome == WRONG


@pytest.mark.parametrize("size", [0, 1, 31, 33, 64])
def test_a_proof_has_the_size_of_a_key(size: int) -> None:
    response = b"c=biws,r=abc" + NONCE.encode() + b",p=" + b64encode(bytes(size))
    assert verified(SHA_256, FIRST, response).outcome == MALFORMED


@pytest.mark.parametrize(
    "rest", [b",x=1" * 6_000, b",x" * 12_000, b"," * 30_000, b"=2C" * 9_000, b"=" * 30_000]
)
def test_a_long_message_is_read_in_one_go(rest: bytes) -> None:
    """These would keep a pattern busy that tries again."""
    for token in (FIRST + rest, b"n,,n=" + rest, b"n,a=" + rest):
        read_first(token)
        scram.read_final(b"c=biws,r=abc" + rest + b",p=")


# -- challenges of brokers --


def challenge(nonce: str = "abcdef", salt: bytes = b"salt", iterations: int = 4096) -> bytes:
    return written_challenge(ServerFirst(nonce, salt, iterations))


@pytest.mark.parametrize("iterations", [LEAST_ITERATIONS, MOST_ITERATIONS])
def test_a_challenge_is_read_as_it_was_written(iterations: int) -> None:
    found = read_challenge(challenge(iterations=iterations), "abc")
    assert found == ServerFirst("abcdef", b"salt", iterations)


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(challenge(iterations=0), id="no iterations"),
        pytest.param(challenge(iterations=1), id="one iteration"),
        pytest.param(challenge(iterations=LEAST_ITERATIONS - 1), id="too few"),
        pytest.param(challenge(iterations=MOST_ITERATIONS + 1), id="too many"),
        pytest.param(challenge(iterations=2**31), id="far too many"),
        pytest.param(challenge(iterations=10**30), id="a number without end"),
        pytest.param(challenge() + b"0" * 5000, id="digits"),
        pytest.param(challenge().replace(b"i=", b"i=-"), id="below zero"),
        pytest.param(challenge().replace(b"i=", b"i=0"), id="a zero first"),
        pytest.param(challenge().replace(b"i=4096", "i=٤٠٩٦".encode()), id="other digits"),
        pytest.param(challenge(nonce="abc"), id="no nonce of the broker"),
        pytest.param(challenge(nonce="xabc"), id="another nonce"),
        pytest.param(challenge(salt=b""), id="no salt"),
        pytest.param(challenge(salt=bytes(2000)), id="a long salt"),
        pytest.param(challenge().replace(b"s=", b"s=A"), id="a salt that is not base64"),
        pytest.param(b"m=1," + challenge(), id="what one must know"),
        pytest.param(b"e=other-error", id="an error"),
        pytest.param(b"", id="nothing"),
        pytest.param(b"\xff", id="no UTF-8"),
    ],
)
def test_a_challenge_that_cannot_be_is_a_violation(said: bytes) -> None:
    with pytest.raises(PeerError, match="challenge of SCRAM"):
        read_challenge(said, "abc")


@pytest.mark.parametrize(
    "said", [b"", b"v=", b"v=" + b64encode(b"other"), b"e=invalid-proof", b"v=AAA", b"\xff"]
)
def test_a_broker_that_does_not_know_the_password_is_a_violation(said: bytes) -> None:
    with pytest.raises(PeerError, match="does not know"):
        check_signature(said, b"signature")


def test_no_key_is_shown_in_a_text() -> None:
    keys = scram_keys(SHA_256, b"secret", b"salt", 4096)
    secret = ScramSecret("alice", SHA_256, b"salt", 4096, keys.stored, keys.server)
    assert repr(keys) == "ScramKeys(...)"
    assert repr(secret) == "ScramSecret(user='alice', mechanism='SCRAM-SHA-256')"
