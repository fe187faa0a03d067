"""Who asks: each request proves it, and clients and servers see only what concerns them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gateway.config import model
from gateway.errors import PeerError
from gateway.identity.signature import signature
from gateway.identity.verified import Verified
from gateway.verifiers import Needs
from gateway.verifiers.signatures import make_verifier
from gateway.wire.account import Action, Right
from gateway.wire.contract import Credential, Denial, EndReason, Principal
from gateway.wire.plugin import EntrySettings, Mode
from gateway.wire.services import Tokens
from gateway.wire.tubemq import methods as m
from gateway.wire.tubemq.callers import BELIEVED, KEPT_SIZE
from gateway.wire.tubemq.clients import known_as
from gateway.wire.tubemq.context import Listener
from gateway.wire.tubemq.methods import METHODS
from gateway.wire.tubemq.session import MOST_WRONG, PROVEN_WITHIN
from tests.playbooks.services import FORBIDDEN

from .script import Tube, TubeServices, ask, asked, tell, told

WALL = 1_795_167_970.0
VISIT = 1_795_000_000_000
"""The master's own token."""

OK: dict[str, Any] = {"errCode": 200, "errMsg": "OK!"}
WELL: dict[str, Any] = {"success": True, **OK}
PRODUCER: dict[str, Any] = {"clientId": "p", "brokerCheckSum": -1, "hostName": "h"}
ID = "g_127.0.0.1-1234-1795167970960-1-Pull-1.13.0"
"""A client id, as consumers in Java have it."""
CONSUMER: dict[str, Any] = {"clientId": ID, "groupName": "g"}
PARTITION: dict[str, Any] = {**CONSUMER, "topicName": "demo", "partitionId": 1}
MESSAGE: dict[str, Any] = {
    "clientId": "p",
    "topicName": "demo",
    "partitionId": 1,
    "data": b"12345",
    "flag": 0,
    "checkSum": -1,
    "sentAddr": 1,
}
REQUESTS: Mapping[int, dict[str, Any]] = {
    m.REGISTER_PRODUCER: PRODUCER,
    m.BEAT_PRODUCER: PRODUCER,
    m.END_PRODUCER: {"clientId": "p"},
    m.REGISTER_CONSUMER: {**CONSUMER, "hostName": "h", "topicList": ["demo"]},
    m.BEAT_CONSUMER: {**CONSUMER, "reportSubscribeInfo": False},
    m.END_CONSUMER: CONSUMER,
    m.SEND_MESSAGE: MESSAGE,
    m.REGISTER_PARTITION: {**PARTITION, "opType": 31, "readStatus": 0},
    m.BEAT_PARTITIONS: {**CONSUMER, "readStatus": 0},
    m.GET_MESSAGES: PARTITION,
    m.COMMIT: PARTITION,
    m.REGISTER_BALANCED: {
        **CONSUMER,
        "hostName": "h",
        "sourceCount": -2,
        "nodeId": -2,
        "topicList": ["demo"],
    },
    m.BEAT_BALANCED: CONSUMER,
    m.FIND_PARTITIONS: {**CONSUMER, "brokerConfigId": -2, "topicMetaInfoId": -2},
}
"""A request of each method, without anything that proves who asks."""

GIVES_TOKENS = [
    number
    for number, it in METHODS.items()
    if "authorizedInfo" in it.reply.DESCRIPTOR.fields_by_name
]


class SigningServices(TubeServices):
    """Services that know alice and bob by what they sign."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        (folder / "users").write_text("alice:secret\nbob:builder\n")
        settings = model.Signature.model_construct(users_file=folder / "users", window=20.0)
        self.verifier = make_verifier(settings, Needs(lambda *_, **__: None))
        self.wall = WALL
        self.verified = 0

    @property
    def methods(self) -> tuple[str, ...]:
        return ("signature",)

    def _principal(self, credential: Credential) -> Principal | Denial:
        self.verified += 1
        found = self.verifier.verify(credential.data, self.wall)
        if isinstance(found, Denial):
            return found
        return Principal(found.name, verified=True, expires_at=found.expires_at)

    def left(self, principal: Principal) -> float:
        return 1e9 if principal.expires_at is None else principal.expires_at - self.wall

    def tokens(self, credential: Credential, client: str) -> Tokens | None:
        return self.verifier.tokens(credential.data, client, self.wall)


class Site:
    """One listener, whose clients sign; `master` and `broker` are connections to it."""

    def __init__(self, folder: Path) -> None:
        self.services = SigningServices(folder)
        self.listener = Listener(EntrySettings(services=self.services, mode=Mode.VERIFY))
        self.listener.visit = VISIT

    def master(self) -> Tube:
        return Tube(self.services, listener=self.listener, signs=True)

    def broker(self) -> Tube:
        return Tube(self.services, 1, listener=self.listener, signs=True)

    def user_of(self, token: str) -> str:
        """Return the name of the user of a token in text."""
        found = self.services.verifier.verify(token.encode(), WALL)
        assert isinstance(found, Verified)
        return found.name


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def signed(user: str = "alice", password: bytes = b"secret", at: float = WALL) -> dict[str, Any]:
    """Return what a request to a master has that is signed."""
    time = int(1000 * at)
    return {
        "authInfo": {
            "authInfo": {
                "userName": user,
                "timestamp": time,
                "nonce": 7,
                "othParams": "",
                "signature": signature(password, user, time, "7"),
            }
        }
    }


def shown(text: str = "", number: int = 0) -> dict[str, Any]:
    """Return what a request to a broker has with these tokens."""
    return {"authInfo": {"visitAuthorizedToken": number, "authAuthorizedToken": text}}


def in_text(user: str = "alice", password: bytes = b"secret") -> str:
    """Return a signature as clients show it to brokers."""
    time = int(1000 * WALL)
    return f"{user} {time} 7 {signature(password, user, time, '7')}"


def registered(play: Tube, method: int = m.REGISTER_PRODUCER, **proof: Any) -> Any:
    """Register at the master; return the reply that the client gets."""
    play.client(ask(method, 1, **REQUESTS[method], **(proof or signed())))
    more = {"brokerCheckSum": -1} if method in (m.REGISTER_PRODUCER, m.BEAT_PRODUCER) else {}
    well = WELL if "success" in METHODS[method].reply.DESCRIPTOR.fields_by_name else OK
    return told(
        play.broker(tell(method, 1, **well, **more, authorizedInfo={"visitAuthorizedToken": VISIT}))
    )


# -- at a master ---------------------------------------------------------------------------------


@pytest.mark.parametrize("method", sorted(set(METHODS) - m.OF_BROKER))
def test_a_signed_request_passes_without_what_it_shows(site: Site, method: int) -> None:
    play = site.master()
    frame = play.client(ask(method, 1, **REQUESTS[method], **signed()))
    expected = REQUESTS[method] | {"clientId": known_as("alice", REQUESTS[method]["clientId"])}
    assert asked(frame) == METHODS[method].request(**expected)


@pytest.mark.parametrize("method", GIVES_TOKENS)
def test_its_reply_has_tokens_in_place_of_the_masters_own(site: Site, method: int) -> None:
    site.listener.visit = 0
    info = registered(site.master(), method).authorizedInfo
    assert info.visitAuthorizedToken not in (0, VISIT)
    assert site.listener.visit == VISIT
    assert site.user_of(info.authAuthorizedToken) == "alice"


@pytest.mark.parametrize("method", sorted(set(METHODS) - m.OF_BROKER))
def test_a_token_stands_for_a_signature(site: Site, method: int) -> None:
    token = registered(site.master()).authorizedInfo.authAuthorizedToken
    fields = REQUESTS[method] | {"authInfo": {"authorizedToken": token}}
    assert site.master().client(ask(method, 1, **fields))


@pytest.mark.parametrize(
    "proof",
    [signed(password=b"other"), signed(at=WALL - 60), signed("carol"), {"authInfo": {}}],
    ids=["password", "time", "user", "nothing"],
)
@pytest.mark.parametrize(
    "method", sorted(set(METHODS) - m.OF_BROKER - {m.BEAT_PRODUCER} - {4, 5, 20, 21})
)
def test_what_is_not_proven_is_refused(site: Site, method: int, proof: dict[str, Any]) -> None:
    play = site.master()
    assert play.client(ask(method, 1, **REQUESTS[method], **proof)) == b""
    assert told(play.client_got()).errCode == 415


def test_a_producer_that_shows_a_wrong_token_registers_anew(site: Site) -> None:
    play = site.master()
    wrong: dict[str, Any] = {"authInfo": {"authorizedToken": "alice 1 t:x"}}
    for proof in (wrong, {}):
        assert play.client(ask(m.BEAT_PRODUCER, 1, **PRODUCER, **proof)) == b""
        assert told(play.client_got()).errCode == 411


# -- consumers that do not sign when they register -----------------------------------------------


@pytest.mark.parametrize(
    ("register", "beat"),
    [(m.REGISTER_CONSUMER, m.BEAT_CONSUMER), (m.REGISTER_BALANCED, m.BEAT_BALANCED)],
)
def test_one_is_asked_for_a_signature_and_the_master_hears_nothing_before(
    site: Site, register: int, beat: int
) -> None:
    play = site.master()
    unsigned: dict[str, Any] = {"authInfo": {"authorizedToken": ""}}
    assert play.client(ask(register, 1, **REQUESTS[register], **unsigned)) == b""
    assert told(play.client_got()).errCode == 200
    assert play.client(ask(beat, 2, **REQUESTS[beat], **unsigned)) == b""
    response = told(play.client_got())
    assert response.errCode == 200
    assert (
        response.requireAuth
        if register == m.REGISTER_CONSUMER
        else response.opsTaskInfo.requireAuth
    )
    assert play.client(ask(beat, 3, **REQUESTS[beat], **signed()))
    well = WELL | {"success": False} if beat == m.BEAT_CONSUMER else OK
    assert told(play.broker(tell(beat, 3, **well | {"errCode": 411}))).errCode == 411
    frame = play.client(ask(register, 4, **REQUESTS[register], **unsigned))
    expected = REQUESTS[register] | {"clientId": known_as("alice", ID)}
    assert asked(frame) == METHODS[register].request(**expected)
    well = WELL if beat == m.BEAT_CONSUMER else OK
    info = told(play.broker(tell(register, 4, **well))).authorizedInfo
    assert site.user_of(info.authAuthorizedToken) == "alice"


def test_one_client_that_has_signed_does_not_let_another_one_in(site: Site) -> None:
    play = site.master()
    play.client(ask(m.BEAT_CONSUMER, 1, **REQUESTS[m.BEAT_CONSUMER], **signed()))
    other = REQUESTS[m.REGISTER_CONSUMER] | {"clientId": "other"}
    assert play.client(ask(m.REGISTER_CONSUMER, 2, **other)) == b""


def test_a_wrong_signature_is_refused_and_not_asked_for_again(site: Site) -> None:
    play = site.master()
    for method in (m.REGISTER_CONSUMER, m.BEAT_CONSUMER, m.REGISTER_BALANCED, m.BEAT_BALANCED):
        proof = signed(password=b"other")
        assert play.client(ask(method, 1, **REQUESTS[method], **proof)) == b""
        assert told(play.client_got()).errCode == 415


# -- at a broker ---------------------------------------------------------------------------------


def test_a_producers_token_lets_its_messages_pass_under_its_name(site: Site) -> None:
    info = registered(site.master()).authorizedInfo
    play = site.broker()
    proof = shown(info.authAuthorizedToken, info.visitAuthorizedToken)
    frame = asked(play.client(ask(m.SEND_MESSAGE, 1, **MESSAGE, **proof)))
    assert frame.authInfo.visitAuthorizedToken == VISIT
    assert not frame.authInfo.HasField("authAuthorizedToken")
    (account,) = site.services.live
    assert (account.action, account.subject.principal) == (Action.PRODUCE, "alice")


def test_each_message_has_to_prove_it_and_the_same_proof_is_verified_once(site: Site) -> None:
    token = registered(site.master()).authorizedInfo.authAuthorizedToken
    play, before = site.broker(), site.services.verified
    for number in range(20):
        assert play.client(ask(m.SEND_MESSAGE, number, **MESSAGE, **shown(token)))
    assert site.services.verified == before + 1
    play.client(ask(m.SEND_MESSAGE, 30, **MESSAGE, **shown("alice 9999999999 t:bogus")))
    play.client(ask(m.SEND_MESSAGE, 31, **MESSAGE))
    heard = play.client_got()
    size = len(heard) - len(tell(m.SEND_MESSAGE, 31, **_unsent("a signature is needed")))
    assert [told(it).errCode for it in (heard[:size], heard[size:])] == [401, 401]
    play.after(BELIEVED)
    play.client(ask(m.SEND_MESSAGE, 32, **MESSAGE, **shown(token)))
    assert site.services.verified == before + 3


def _unsent(text: str) -> dict[str, Any]:
    return {"success": False, "errCode": 401, "errMsg": text}


def test_a_token_that_expires_is_not_believed_any_longer(site: Site) -> None:
    token = registered(site.master()).authorizedInfo.authAuthorizedToken
    play = site.broker()
    site.services.wall = WALL + 890
    assert play.client(ask(m.SEND_MESSAGE, 1, **MESSAGE, **shown(token)))
    site.services.wall = WALL + 901
    play.after(11)
    assert play.client(ask(m.SEND_MESSAGE, 2, **MESSAGE, **shown(token))) == b""
    assert told(play.client_got()).errMsg == "the token has expired"


def test_clients_of_several_users_share_a_connection(site: Site) -> None:
    play = site.broker()
    proofs = shown(in_text()), shown(in_text("bob", b"builder"))
    for number, proof in enumerate(proofs * 2):
        play.client(ask(m.SEND_MESSAGE, number, **MESSAGE, **proof))
    by_name = {it.subject.principal: it.messages for it in site.services.live}
    assert by_name == {"alice": 2, "bob": 2}


def test_a_consumer_shows_the_number_for_its_id_alone(site: Site) -> None:
    token = registered(site.master(), m.REGISTER_CONSUMER).authorizedInfo.visitAuthorizedToken
    register = REQUESTS[m.REGISTER_PARTITION]
    frame = site.broker().client(ask(m.REGISTER_PARTITION, 1, **register, **shown(number=token)))
    assert asked(frame).authInfo.visitAuthorizedToken == VISIT
    other = register | {"clientId": "other"}
    play = site.broker()
    assert play.client(ask(m.REGISTER_PARTITION, 1, **other, **shown(number=token))) == b""
    assert told(play.client_got()).errCode in (200, 415)


def test_a_text_is_never_read_as_a_number(site: Site) -> None:
    """It could be for the id of another client than the one that asks."""
    token = registered(site.master(), m.REGISTER_CONSUMER).authorizedInfo.visitAuthorizedToken
    text = "\0" + token.to_bytes(8).decode("latin-1") + "c"
    play = site.broker()
    register = REQUESTS[m.REGISTER_PARTITION] | {"clientId": "other"}
    assert play.client(ask(m.REGISTER_PARTITION, 1, **register, **shown(text))) == b""


@pytest.mark.parametrize("method", [m.GET_MESSAGES, m.COMMIT])
def test_messages_are_for_who_has_registered_on_the_connection(site: Site, method: int) -> None:
    play = site.broker()
    assert play.client(ask(method, 1, **PARTITION)) == b""
    response = told(play.client_got())
    assert response.errCode == (452 if method == m.GET_MESSAGES else 411)
    assert method == m.COMMIT or response.minLimitTime > 0
    play.client(ask(m.REGISTER_PARTITION, 2, **REQUESTS[m.REGISTER_PARTITION], **shown(in_text())))
    assert play.client(ask(method, 3, **PARTITION))
    for field, value in (("clientId", "d"), ("groupName", "h"), ("partitionId", 2)):
        assert play.client(ask(method, 4, **PARTITION | {field: value})) == b""
    leave = REQUESTS[m.REGISTER_PARTITION] | {"opType": 32} | shown(in_text())
    assert play.client(ask(m.REGISTER_PARTITION, 5, **leave))
    assert play.client(ask(method, 6, **PARTITION)) == b""


@pytest.mark.parametrize("method", [m.GET_MESSAGES, m.COMMIT])
def test_a_consumer_whose_connection_is_new_goes_on_after_a_heartbeat(
    site: Site, method: int
) -> None:
    """It does not register again."""
    play = site.broker()
    beat = REQUESTS[m.BEAT_PARTITIONS] | {"partitionInfo": ["1:gateway:1#demo:1"]}
    play.client(ask(m.BEAT_PARTITIONS, 1, **beat, **shown(number=5)))
    assert play.client(ask(method, 2, **PARTITION)) == b""
    token = registered(site.master(), m.REGISTER_CONSUMER).authorizedInfo.visitAuthorizedToken
    assert play.client(ask(m.BEAT_PARTITIONS, 3, **beat, **shown(number=token)))
    assert play.client(ask(method, 4, **PARTITION))
    assert play.client(ask(method, 5, **PARTITION | {"topicName": "other"})) == b""


def test_a_connection_ends_on_which_nobody_proves_anything(site: Site) -> None:
    """Questions that need no proof do not keep it."""
    stranger, alice = site.master(), site.master()
    registered(alice)
    beat: dict[str, Any] = {"authInfo": {"authorizedToken": ""}}
    for serial in range(3):
        stranger.after(PROVEN_WITHIN / 4)
        stranger.client(ask(m.BEAT_CONSUMER, serial, **REQUESTS[m.BEAT_CONSUMER], **beat))
    assert not stranger.end
    for play in (stranger, alice):
        play.after(PROVEN_WITHIN)
    reasons = [play.end and play.end.reason for play in (stranger, alice)]
    assert reasons == [EndReason.AUTHENTICATION_FAILED, None]


def test_messages_that_show_who_sends_them_are_read_each(site: Site) -> None:
    """What they show is valid for some time only, and is not for brokers."""
    token = registered(site.master()).authorizedInfo.authAuthorizedToken
    play = site.broker()
    frames = [ask(m.SEND_MESSAGE, number, **MESSAGE, **shown(token)) for number in range(3)]
    assert not any(map(play.passes, frames))


def test_who_registers_for_a_partition_has_later_requests_judged_anew(site: Site) -> None:
    """They pass for who has registered, which may be another client now."""
    token = registered(site.master(), m.REGISTER_CONSUMER).authorizedInfo.visitAuthorizedToken
    play, register = site.broker(), REQUESTS[m.REGISTER_PARTITION] | shown(number=token)
    play.client(ask(m.REGISTER_PARTITION, 1, **register))
    assert not play.passes(ask(m.GET_MESSAGES, 2, **PARTITION))
    assert play.passes(ask(m.GET_MESSAGES, 3, **PARTITION))
    play.client(ask(m.REGISTER_PARTITION, 4, **register | {"opType": m.UNREGISTER}))
    assert not play.passes(ask(m.GET_MESSAGES, 5, **PARTITION))
    assert told(play.client_got()).errCode == 452


@pytest.mark.parametrize("text", ["1:h:1#a:0#b:0", "1:h:1#a:0:1", "1:h:1#a", "1:h:1", "1:h:1#a:x"])
def test_a_partition_that_servers_could_read_otherwise_is_a_violation(
    site: Site, text: str
) -> None:
    play = site.broker()
    beat = REQUESTS[m.BEAT_PARTITIONS] | {"partitionInfo": [text]} | shown(in_text())
    with pytest.raises(PeerError):
        play.client(ask(m.BEAT_PARTITIONS, 1, **beat))


def test_a_registration_without_the_right_gives_no_messages(site: Site) -> None:
    site.services.forbidden = {(Right.CONSUME, "group:g")}
    play = site.broker()
    register = REQUESTS[m.REGISTER_PARTITION] | shown(in_text())
    assert play.client(ask(m.REGISTER_PARTITION, 1, **register)) == b""
    assert told(play.client_got()).errMsg == FORBIDDEN.text
    assert play.client(ask(m.GET_MESSAGES, 2, **PARTITION)) == b""


def test_a_heartbeat_without_proof_asks_for_a_signature(site: Site) -> None:
    play = site.broker()
    beat = REQUESTS[m.BEAT_PARTITIONS]
    assert play.client(ask(m.BEAT_PARTITIONS, 1, **beat, **shown(number=5))) == b""
    response = told(play.client_got())
    assert (response.success, response.requireAuth) == (True, True)
    assert play.client(ask(m.BEAT_PARTITIONS, 2, **beat, **shown(in_text())))
    assert play.client(ask(m.BEAT_PARTITIONS, 3, **beat, **shown(in_text("carol")))) == b""
    assert told(play.client_got()).errCode == 415


# -- bounds ----------------------------------------------------------------------------------------


def test_wrong_guesses_are_answered_ever_later_and_many_end_the_connection(site: Site) -> None:
    site.services.delay_of_failures = 2.0
    play = site.broker()
    play.client(ask(m.SEND_MESSAGE, 1, **MESSAGE, **shown(in_text("carol"))))
    assert play.client_got() == b""
    play.after(2.0)
    assert told(play.client_got()).errCode == 401
    assert play.client(ask(m.SEND_MESSAGE, 2, **MESSAGE, **shown(in_text())))
    for number in range(10, 10 + MOST_WRONG + 1):
        play.client(ask(m.SEND_MESSAGE, number, **MESSAGE, **shown(in_text("carol"))))
    assert play.ended is EndReason.AUTHENTICATION_FAILED


def test_what_is_kept_of_registrations_has_a_bound(site: Site) -> None:
    play = site.broker()
    play.budget_of.size = 10 * KEPT_SIZE
    responses = []
    for number in range(10):
        fields = REQUESTS[m.REGISTER_PARTITION] | {"partitionId": number} | shown(in_text())
        passed = play.client(ask(m.REGISTER_PARTITION, number, **fields))
        responses.append(200 if passed else told(play.client_got()).errCode)
    assert responses[0] == 200
    assert responses[-1] == 401
    leave = REQUESTS[m.REGISTER_PARTITION] | {"partitionId": 0, "opType": 32} | shown(in_text())
    assert play.client(ask(m.REGISTER_PARTITION, 20, **leave))
    again = REQUESTS[m.REGISTER_PARTITION] | {"partitionId": 9} | shown(in_text())
    assert play.client(ask(m.REGISTER_PARTITION, 21, **again))
    play.close()
    assert play.budget_of.taken == 0


# -- known -----------------------------------------------------------------------------------------


def test_where_nobody_is_verified_a_client_is_known_once_the_server_has_replied() -> None:
    play = Tube()
    assert not play.session.is_known
    play.client(ask(m.REGISTER_PRODUCER, 1, **PRODUCER))
    assert not play.session.is_known
    play.broker(tell(m.REGISTER_PRODUCER, 1, **WELL, brokerCheckSum=1))
    assert play.session.is_known
