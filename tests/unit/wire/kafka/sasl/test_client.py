"""How the gateway shows its own credential: to the gateway's own other side, and to liars."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import PeerError
from gateway.identity.scram import line, read_users
from gateway.wire.contract import Credential, Denial, Principal
from gateway.wire.kafka.sasl import client as client_side
from gateway.wire.kafka.sasl.bearer import REFUSED, UNDERSTOOD
from gateway.wire.kafka.sasl.client import Proving, chosen, client
from gateway.wire.kafka.sasl.exchange import Accepted, Challenge, Exchange, Verifier
from gateway.wire.kafka.sasl.mechanisms import begin
from gateway.wire.scram import ScramSecret, scram_keys
from tests.unit.wire.kafka.sasl.doubles import SHA_256, SHA_512, SaslServices

OURS = Credential("basic", b"alice:secret")
TOKEN = Credential("token", b"alice's.token")
ALL = (SHA_256, SHA_512, "PLAIN", "OAUTHBEARER")


class Believing(SaslServices):
    """Accepts each PLAIN and OAUTHBEARER token."""

    def _principal(self, credential: Credential) -> Principal | Denial:
        return Principal("anybody", verified=True)


def converse(mechanism: str, proving: Proving, services: SaslServices) -> Accepted | Denial:
    """Have the gateway's two sides talk to each other. The client has verified the broker if that
    ends with `Accepted`."""
    exchange: Exchange = begin(mechanism, next(proving), Verifier(services, "192.0.2.1"))
    said: bytes | None = None
    while True:
        try:
            move = exchange.send(said)
        except StopIteration as end:
            outcome: Accepted | Denial = end.value
            if isinstance(outcome, Accepted):
                with pytest.raises(StopIteration):
                    proving.send(outcome.data)
            return outcome
        assert isinstance(move, Challenge)
        said = proving.send(move.data)


# -- against the gateway's own other side --

NAMES = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], exclude_characters=":#"), min_size=1, max_size=20
).filter(lambda name: name == name.strip())
"""As a file of users may have them."""
PASSWORDS = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=40
)


@given(NAMES, PASSWORDS, st.sampled_from([SHA_256, SHA_512]), st.binary(min_size=8, max_size=64))
def test_who_has_the_password_is_accepted_by_scram(
    user: str, password: str, mechanism: str, salt: bytes
) -> None:
    services = SaslServices()
    services.users = dict(read_users(line(user, password, mechanism, 4096, salt).encode(), "It"))
    credential = Credential("basic", f"{user}:{password}".encode())
    outcome = converse(mechanism, client(mechanism, credential), services)
    assert isinstance(outcome, Accepted)
    assert outcome.principal.name == user


@given(NAMES, PASSWORDS)
def test_a_name_and_a_password_pass_by_plain(user: str, password: str) -> None:
    services = Believing()
    credential = Credential("basic", f"{user}:{password}".encode())
    assert isinstance(converse("PLAIN", client("PLAIN", credential), services), Accepted)
    assert services.shown == [credential]


VALUES = st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=1)
KEYS = st.text("bcXYZ", min_size=1)


@given(
    st.text("abcXYZ019-._~+/", min_size=1),
    st.dictionaries(KEYS, VALUES, max_size=5),
)
def test_a_token_and_its_extensions_pass(token: str, extensions: dict[str, str]) -> None:
    services = Believing()
    credential = Credential("token", token.encode())
    proving = client("OAUTHBEARER", credential, extensions)
    outcome = converse("OAUTHBEARER", proving, services)
    assert isinstance(outcome, Accepted)
    assert (services.shown, outcome.extensions) == ([credential], extensions)


def test_each_nonce_is_another_one() -> None:
    assert next(client(SHA_256, OURS)) != next(client(SHA_256, OURS))


# -- the mechanism --


@pytest.mark.parametrize(
    ("offered", "best"),
    [
        (ALL, SHA_512),
        (("PLAIN", SHA_256), SHA_256),
        (("PLAIN", "GSSAPI"), "PLAIN"),
        (("GSSAPI", "OAUTHBEARER"), None),
        ((), None),
    ],
)
def test_the_best_mechanism_is_chosen(offered: tuple[str, ...], best: str | None) -> None:
    assert chosen(OURS, offered, plainly=True) == best


def test_a_broker_that_may_not_see_the_password_does_not() -> None:
    assert chosen(OURS, ("PLAIN",), plainly=False) is None
    assert chosen(OURS, ("PLAIN", SHA_256), plainly=False) == SHA_256


@pytest.mark.parametrize("credential", [TOKEN, Credential("none", b""), Credential("tls", b"")])
def test_a_credential_that_is_no_password_is_not_shown_as_one(credential: Credential) -> None:
    assert chosen(credential, (SHA_256, SHA_512, "PLAIN"), plainly=True) is None


def test_a_token_is_shown_as_one() -> None:
    assert chosen(TOKEN, ALL, plainly=False) == "OAUTHBEARER"


# -- brokers that lie --


def _forged(*, knows: bytes, signs: Callable[[bytes], bytes] = bytes) -> bytes:
    """Return what a broker says last that knows this password. `signs`: what it makes of it."""
    services = SaslServices()
    keys = scram_keys(SHA_256, b"secret", b"0123456789abcdef", 4096)
    other = scram_keys(SHA_256, knows, b"0123456789abcdef", 4096)
    services.users["alice", SHA_256] = ScramSecret(
        "alice", SHA_256, b"0123456789abcdef", 4096, keys.stored, other.server
    )
    proving = client(SHA_256, OURS)
    exchange = begin(SHA_256, next(proving), Verifier(services, "192.0.2.1"))
    move = next(exchange)
    assert isinstance(move, Challenge)
    with pytest.raises(StopIteration) as end:
        exchange.send(proving.send(move.data))
    said = signs(end.value.value.data)
    with pytest.raises((PeerError, StopIteration)) as ended:
        proving.send(said)
    return b"" if isinstance(ended.value, StopIteration) else str(ended.value).encode()


def test_a_broker_that_knows_the_password_is_believed() -> None:
    assert _forged(knows=b"secret") == b""


@pytest.mark.parametrize("signs", [bytes, lambda _: b"", lambda _: b"v=", lambda it: it[:-4]])
def test_a_broker_that_does_not_know_the_password_is_a_violation(
    signs: Callable[[bytes], bytes],
) -> None:
    assert b"does not know" in _forged(knows=b"another", signs=signs)


def test_a_broker_that_says_nothing_at_the_end_is_a_violation() -> None:
    assert b"does not know" in _forged(knows=b"secret", signs=lambda _: b"")


def test_a_hostile_broker_makes_the_gateway_compute_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(client_side, "_keys", lambda *_: pytest.fail("it computes"))
    proving = client(SHA_256, OURS, nonce="abc")
    next(proving)
    with pytest.raises(PeerError, match="2147483648 iterations"):
        proving.send(b"r=abcdef,s=c2FsdA==,i=2147483648")


def test_keys_are_computed_once_for_the_brokers_of_a_cluster(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    computed: list[bytes] = []
    client_side._keys.cache_clear()

    def keys(mechanism: str, password: bytes, salt: bytes, iterations: int) -> object:
        computed.append(salt)
        return scram_keys(mechanism, password, salt, iterations)

    monkeypatch.setattr(client_side, "scram_keys", keys)
    for challenge in [b"r=abcd,s=b25jZQ==,i=4096"] * 3 + [b"r=abcd,s=dHdpY2U=,i=4096"]:
        proving = client(SHA_256, OURS, nonce="abc")
        next(proving)
        proving.send(challenge)
    assert computed == [b"once", b"twice"]


def test_a_refused_token_is_understood_and_then_nothing_is_accepted() -> None:
    proving = client("OAUTHBEARER", TOKEN)
    next(proving)
    assert proving.send(REFUSED) == UNDERSTOOD
    with pytest.raises(PeerError, match="after it has refused"):
        proving.send(b"")
