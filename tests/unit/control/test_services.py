"""The responses that a session gets about brokers, other clusters, names and limits."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from gateway.brokers.learned import LearnedHosts
from gateway.brokers.names import ChainedNames, Names, SealedNames, TemplateNames
from gateway.brokers.seal import SealKey
from gateway.control.failures import FREE
from gateway.control.services import MOST_ERRORS, ClusterParts, ListenerServices, Verifier
from gateway.control.slots import ADDRESS_FULL, PRINCIPAL_FULL, Slot, Slots
from gateway.control.turns import HashTurns
from gateway.identity.credential import NoCredential
from gateway.identity.verified import Verified
from gateway.policy.access import Access
from gateway.policy.accounts import AccountBook
from gateway.policy.matching import RuleSet
from gateway.policy.rules import Rule
from gateway.telemetry.figures import ClusterFigures
from gateway.wire.account import Account, Action, Burst, Right
from gateway.wire.address import Address
from gateway.wire.contract import Credential, Denial, Principal, Refusal, Settle
from gateway.wire.counters import ENDLESS
from gateway.wire.pulsar.plugin import PLUGIN as PULSAR
from gateway.wire.scram import ScramSecret
from gateway.wire.services import Again
from gateway.wire.subject import NOBODY, Caller, Subject
from tests.support.subjects import subject_of, topic_of

HOST = "192.0.2.1"
BROKER = Address("pulsar-0.internal", 6650)
ELSEWHERE = Address("blue.internal", 6650)
OTHER_GATEWAY = Address("blue-gateway.example", 6650)
SEALED = SealedNames("main", [SealKey(bytes(range(32)))])
READABLE = TemplateNames("broker-{n}.example", "pulsar-{n}.internal:6650")


class Setting:
    """The services of a listener, with recorded log and figures."""

    def __init__(
        self,
        names: Names = SEALED,
        limits: FakeLimits | None = None,
        access: Access | None = None,
        verifiers: Mapping[str, Verifier] | None = None,
        naming: Callable[[str], str | None] | None = None,
        wall_clock: Callable[[], float] = time.time,
        slots: Slots | None = None,
        turns: HashTurns | None = None,
    ) -> None:
        self.accounts = AccountBook()
        self.figures = ClusterFigures()
        self.logged: list[str] = []
        self.learned = LearnedHosts(PULSAR)
        known = (names, self.learned, NoCredential(), self.accounts, self.figures)
        parts = ClusterParts("main", *known, {ELSEWHERE: OTHER_GATEWAY})
        self.services = ListenerServices(
            parts,
            dict(verifiers or {}),
            lambda event, **_: self.logged.append(event),
            wall_clock,
            name="clients",
            limits=limits,
            access=access,
            naming=naming or str,
            slots=slots,
            turns=turns,
        )


# -- rights ------------------------------------------------------------------------------------


def test_without_rules_clients_need_no_rights() -> None:
    services = Setting().services
    assert not services.guarded
    for right in Right:
        assert services.forbid(right, subject_of("orders")) is None
        assert services.which(right, NOBODY)(topic_of("orders"))


def test_with_rules_they_decide() -> None:
    rule = Rule.model_validate({"id": "no", "match": {"topic": "secret"}, "deny": "lookup"})
    access = Access(RuleSet.compile([rule]), {"clients": "open"}, lambda _: None)
    services = Setting(access=access).services
    assert services.guarded
    assert isinstance(services.forbid(Right.LOOKUP, subject_of("secret")), Denial)
    assert services.forbid(Right.LOOKUP, subject_of("orders")) is None
    which = services.which(Right.LOOKUP, NOBODY)
    assert (which(topic_of("secret")), which(topic_of("orders"))) == (False, True)


# -- who connects ------------------------------------------------------------------------------


def client_at(host: str | None, principal: str | None = None) -> Subject:
    return Subject(Caller(host=host, principal=principal))


def test_without_bounds_everybody_has_a_seat() -> None:
    services = Setting().services
    for client in (client_at("192.0.2.1", "alice"), client_at("192.0.2.1"), NOBODY):
        for _ in range(100):
            assert isinstance(services.slot(client), Slot)


def test_a_seat_is_of_the_address_and_the_principal() -> None:
    services = Setting(slots=Slots(of_address=2, of_principal=1)).services
    slot = services.slot(client_at("192.0.2.1", "alice"))
    assert isinstance(slot, Slot)
    assert services.slot(client_at("192.0.2.2", "alice")) == PRINCIPAL_FULL
    assert isinstance(services.slot(client_at("192.0.2.1", "bob")), Slot)
    assert services.slot(client_at("192.0.2.1", "carol")) == ADDRESS_FULL
    slot.leave()
    assert isinstance(services.slot(client_at("192.0.2.2", "alice")), Slot)


def test_failures_count_at_all_listeners_and_seats_at_each() -> None:
    """Who guesses at one listener goes on at the next."""
    turns = HashTurns(lambda: 1000.0)
    one, other = (Setting(slots=Slots(1), turns=turns).services for _ in range(2))
    assert [one.setback("2001:db8::1") for _ in range(FREE)] == [0.0] * FREE
    assert other.setback("2001:db8::2") > 0
    for services in (one, other):
        assert isinstance(services.slot(client_at("192.0.2.1")), Slot)
        assert services.slot(client_at("192.0.2.1")) == ADDRESS_FULL


# -- errors ------------------------------------------------------------------------------------


def test_errors_of_answers_are_counted_as_long_as_they_are_of_few_kinds() -> None:
    setting = Setting()
    for code in range(MOST_ERRORS + 1):
        setting.services.answered_by_error("Produce", code)
    setting.services.answered_by_error("Produce", 1)
    assert len(setting.figures.errors) == MOST_ERRORS
    assert setting.figures.errors["Produce", 1] == 2


# -- other clusters ----------------------------------------------------------------------------


def test_the_gateway_of_another_cluster_is_returned() -> None:
    setting = Setting()
    assert setting.services.migrated(ELSEWHERE) == OTHER_GATEWAY
    assert (setting.figures.migrations, setting.figures.migrations_withheld) == (1, 0)
    assert setting.logged == []


def test_a_cluster_without_a_gateway_is_withheld_counted_and_logged() -> None:
    setting = Setting()
    assert isinstance(setting.services.migrated(BROKER), Denial)
    assert (setting.figures.migrations, setting.figures.migrations_withheld) == (0, 1)
    assert setting.logged == ["migration_without_gateway"]


# -- addresses in texts ------------------------------------------------------------------------


@pytest.mark.parametrize("names", [READABLE, ChainedNames(SEALED)])
def test_names_that_clients_invent_are_not_learned(names: Names) -> None:
    """They would evict addresses that brokers named."""
    setting = Setting(names)
    setting.services.advertise(BROKER)
    known = len(setting.learned)
    for number in range(100):
        setting.services.open(f"broker-{number}.example:6650")
        setting.services.open(f"{number:050}.gw:6650")
    assert len(setting.learned) == known
    assert setting.services.clean(f"at {BROKER}") == "at broker"


# -- aliases -----------------------------------------------------------------------------------


def test_an_alias_is_another_name_of_the_same_broker() -> None:
    services = Setting().services
    name, alias = services.advertise(BROKER), services.alias(BROKER)
    assert isinstance(name, Address)
    assert isinstance(alias, Address)
    assert name != alias
    assert services.open(str(name)) == services.open(str(alias)) == BROKER


def test_gateways_that_stop_have_different_aliases() -> None:
    one, other = Setting().services, Setting().services
    one.leave(17)
    other.leave(18)
    assert one.alias(BROKER) != other.alias(BROKER)


def test_lookups_are_answered_with_aliases_while_the_gateway_stops() -> None:
    services = Setting().services
    before = services.advertise(BROKER)
    services.leave(17)
    assert services.advertise(BROKER) == services.alias(BROKER) != before


@pytest.mark.parametrize("stops", [False, True])
def test_a_name_made_from_a_template_has_no_alias(stops: bool) -> None:
    setting = Setting(READABLE)
    if stops:
        setting.services.leave(17)
    assert setting.services.advertise(BROKER) == Address("broker-0.example", 6650)
    assert isinstance(setting.services.alias(BROKER), Denial)
    assert setting.logged == []


# -- rules -------------------------------------------------------------------------------------


class FakeLimits:
    """Rate limits with configurable answers."""

    def __init__(self, denial: Denial | None = None) -> None:
        self.denial = denial
        self.paced = {Action.LOOKUP}
        self.asked: list[tuple[Action, str | None]] = []
        self.again: list[bool] = []
        self.released: list[Account] = []

    def wait(self, action: Action, subject: Subject, again: Again | None) -> float | Again | Denial:
        self.asked.append((action, subject.listener))
        return Again(0.1, since=5.0) if again is None else again.since

    def admit(self, account: Account, *, again: bool) -> Denial | None:
        self.asked.append((account.action, account.subject.listener))
        self.again.append(again)
        return self.denial

    def wants(self, account: Account) -> bool:
        return True

    def is_in_debt(self, account: Account) -> bool:
        return True

    def due_in(self, account: Account) -> float:
        return 7.0

    def burst(self, account: Account) -> Burst:
        return Burst(3, 300)

    def release(self, account: Account) -> None:
        self.released.append(account)


def completed(services: ListenerServices) -> Subject:
    """Return the subject of a client that the services have completed, with a topic."""
    return Subject(services.complete(Caller()), topic_of("orders"))


def test_a_refused_account_is_closed() -> None:
    denial = Denial(Refusal.FULL, "rule few allows 1 producers")
    setting = Setting(limits=FakeLimits(denial))
    assert setting.services.admit(Action.PRODUCE, subject_of("orders")) is denial
    assert list(setting.accounts.topics()) == []


def test_an_admitted_account_is_released_from_its_limits() -> None:
    rules = FakeLimits()
    services = Setting(limits=rules).services
    account = services.admit(Action.PRODUCE, completed(services))
    assert isinstance(account, Account)
    services.release(account)
    assert rules.asked == [(Action.PRODUCE, "clients")]
    assert rules.released == [account]


def test_no_account_is_in_debt_without_limits() -> None:
    account = Account(Action.CONSUME, subject_of("orders"))
    assert Setting(limits=FakeLimits()).services.is_in_debt(account)
    assert not Setting().services.is_in_debt(account)


def test_an_account_without_limits_is_due_at_once() -> None:
    account = Account(Action.CONSUME, subject_of("orders"))
    assert Setting(limits=FakeLimits()).services.due_in(account) == 7.0
    assert Setting().services.due_in(account) == 0.0
    assert Setting(limits=FakeLimits()).services.burst(account) == Burst(3, 300)
    assert Setting().services.burst(account) == Burst(ENDLESS, ENDLESS)


def test_rules_decide_the_waiting_time() -> None:
    rules = FakeLimits()
    services = Setting(limits=rules).services
    assert services.paced == {Action.LOOKUP}
    subject = completed(services)
    response = services.wait(Action.LOOKUP, subject)
    assert isinstance(response, Again)
    assert services.wait(Action.LOOKUP, subject, response) == 5.0
    assert rules.asked == [(Action.LOOKUP, "clients")] * 2


def test_nobody_waits_without_rules() -> None:
    services = Setting().services
    assert not services.paced
    assert services.wait(Action.LOOKUP, subject_of("orders")) == 0


def test_rules_get_whether_an_account_was_open_before() -> None:
    rules = FakeLimits()
    services = Setting(limits=rules).services
    for again in (False, True):
        services.admit(Action.PRODUCE, subject_of("orders"), again=again)
    assert rules.again == [False, True]


# -- subjects ----------------------------------------------------------------------------------


def test_a_caller_gets_listener_and_cluster() -> None:
    caller = Caller(protocol="pulsar", connection=7, principal="alice")
    expected = caller._replace(listener="clients", cluster="main")
    assert Setting().services.complete(caller) == expected


@pytest.mark.parametrize("action", [Action.PRODUCE, Action.CONSUME, Action.LOOKUP])
@pytest.mark.parametrize("limits", [None, FakeLimits()])
def test_an_account_has_the_subject_of_its_admission(
    action: Action, limits: FakeLimits | None
) -> None:
    services = Setting(limits=limits).services
    client = Subject(services.complete(Caller(principal="alice", library="Pulsar-CPP-v4.2.0")))
    subject = client.about(topic_of("orders"), "s")
    account = services.admit(action, subject)
    assert isinstance(account, Account)
    assert account.topic == "persistent://public/default/orders"
    assert account.subject == subject
    assert account.subject.caller is client.caller


# -- clients -----------------------------------------------------------------------------------


class FakeVerifier:
    """Verifies by what clients show: `alice` is Alice, `wrong` is refused, `later ...` is settled
    later, `hashed ...` too, by a hash. `asked`: what it was shown."""

    def __init__(self) -> None:
        self.asked: list[tuple[bytes, float, bytes | None]] = []

    def verify(
        self, data: bytes, now_wall: float, certificate: bytes | None = None
    ) -> Verified | Denial | FakeUnsettled:
        self.asked.append((data, now_wall, certificate))
        said = data.decode()
        when, _, name = said.rpartition(" ")
        return FakeUnsettled(name, when) if when else proven(name)


class FakeUnsettled:
    def __init__(self, said: str, when: str) -> None:
        self._said = said
        self.hashes_for = said if when == "hashed" else None

    async def outcome(self) -> Verified | Denial:
        return proven(self._said)


WRONG = Denial(Refusal.UNAUTHENTICATED, "wrong")


def proven(said: str) -> Verified | Denial:
    return WRONG if said == "wrong" else Verified(said, 1000.0)


def named(name: str) -> str | None:
    return None if name == "nobody" else f"user-{name}"


async def response(
    said: str, method: str = "token", naming: Callable[[str], str | None] | None = None
) -> Principal | Denial:
    """Return the response about a client, once it is settled."""
    services = Setting(verifiers={method: FakeVerifier()}, naming=naming).services
    found = services.authenticate(Credential(method, said.encode()), HOST)
    assert isinstance(found, Settle) == said.startswith(("later ", "hashed "))
    settled = await found.response() if isinstance(found, Settle) else found
    assert settled is not None
    return settled


def test_the_verifier_of_the_method_is_shown_everything() -> None:
    token, tls = FakeVerifier(), FakeVerifier()
    services = Setting(verifiers={"token": token, "tls": tls}, wall_clock=lambda: 5.0).services
    services.authenticate(Credential("tls", b"alice"), HOST, b"certificate")
    services.authenticate(Credential("token", b"bob"), HOST)
    assert tls.asked == [(b"alice", 5.0, b"certificate")]
    assert token.asked == [(b"bob", 5.0, None)]


@pytest.mark.parametrize(
    ("methods", "needed"),
    [
        (["token"], "token"),
        (["token", "basic"], "basic or token"),
        (["tls", "token", "basic"], "basic or tls or token"),
        (["", "none", "token"], "none or token"),
    ],
)
@pytest.mark.parametrize("shown", ["sasl", "TOKEN", "token "])
def test_another_method_is_refused_by_naming_those_that_are_not(
    methods: list[str], needed: str, shown: str
) -> None:
    services = Setting(verifiers=dict.fromkeys(methods, FakeVerifier())).services
    denial = Denial(Refusal.UNAUTHENTICATED, f"a credential of method {needed} is needed")
    assert services.authenticate(Credential(shown, b"alice"), HOST) == denial


@pytest.mark.parametrize("when", ["", "later ", "hashed "])
async def test_a_proven_name_is_a_principal(when: str) -> None:
    alice = Principal("alice", verified=True, expires_at=1000.0)
    assert await response(f"{when}alice") == alice
    assert await response(f"{when}wrong") is WRONG


@pytest.mark.parametrize("when", ["", "later "])
async def test_principals_are_named_as_configured(when: str) -> None:
    alice = Principal("user-alice", verified=True, expires_at=1000.0)
    assert await response(f"{when}alice", naming=named) == alice
    assert await response(f"{when}wrong", naming=named) is WRONG
    denial = await response(f"{when}nobody", naming=named)
    assert denial == Denial(Refusal.UNAUTHENTICATED, "a client of this name is not accepted here")


# -- passwords that are not shown ----------------------------------------------------------------

SECRET = ScramSecret("alice", "SCRAM-SHA-256", b"salt", 4096, b"stored", b"server")


class FakeScram(FakeVerifier):
    """Knows one secret."""

    def secret(self, user: str, mechanism: str) -> ScramSecret:
        return replace(SECRET, user=user, mechanism=mechanism)

    def proven(self, secret: ScramSecret, *, right: bool) -> Verified | Denial:
        return Verified(secret.user, None) if right else WRONG


def test_a_secret_is_that_of_the_verifier() -> None:
    services = Setting(verifiers={"scram": FakeScram()}).services
    assert services.scram("alice", "SCRAM-SHA-256") == SECRET


def test_who_has_proven_a_password_is_named_as_configured() -> None:
    services = Setting(verifiers={"scram": FakeScram()}, naming=named).services
    assert services.scram_ended(SECRET, right=True) == Principal("user-alice", verified=True)
    assert services.scram_ended(SECRET, right=False) is WRONG
    assert isinstance(services.scram_ended(replace(SECRET, user="nobody"), right=True), Denial)


def test_the_methods_are_those_that_have_a_verifier() -> None:
    verifiers = {"scram": FakeScram(), "token": FakeVerifier()}
    assert set(Setting(verifiers=verifiers).services.methods) == {"scram", "token"}
    assert set(Setting().services.methods) == set()
