"""What the meter reads off accounts, by whom it is counted, and what it forgets."""

from __future__ import annotations

import weakref

import pytest

from gateway.policy.accounts import AccountBook
from gateway.policy.limiter import Limiter
from gateway.telemetry.figures import OTHER
from gateway.usage.interval import Interval, Key, Sums
from gateway.usage.meter import LOOKS_AT_ONCE, Meter, Naming, network_of
from gateway.wire.account import Account, Action
from gateway.wire.subject import Caller, Subject
from tests.support.subjects import subject_of, topic_of
from tests.unit.policy.world import messages


class Trial:
    def __init__(self, naming: Naming | None = None, most: int = 1000) -> None:
        self.meter = Meter(naming, Interval(most))
        self.book = AccountBook(watchers=[self.meter])
        self.now = 0.0

    def open(
        self, topic: str = "a", action: Action = Action.PRODUCE, principal: str | None = "alice"
    ) -> Account:
        name = None if action is Action.PRODUCE else "sub"
        subject = subject_of(topic, name, principal=principal, host="192.0.2.77", listener="l")
        return self.book.open(action, subject)

    def second(self) -> None:
        for _ in self.meter.look():
            pass
        self.now += 1.0

    def taken(self) -> dict[Key, Sums]:
        """Return the sums of the interval that ends now."""
        self.second()
        return dict(self.meter.take(self.now).drain())

    def only(self) -> Sums:
        (sums,) = self.taken().values()
        return sums


def send(account: Account, messages: int, size: int, *, receipt: bool = True) -> None:
    account.count(messages)
    account.bytes += size
    account.receipts += receipt


def test_what_is_used_is_told_once() -> None:
    trial = Trial()
    account = trial.open()
    send(account, 3, 30)
    sums = trial.only()
    assert (sums.frames, sums.messages, sums.bytes) == (1, 3, 30)
    assert trial.taken() == {}
    send(account, 1, 5)
    assert trial.only().messages == 1


def test_an_idle_producer_keeps_no_interval() -> None:
    """Each kept the sums of all keys of the interval in which it was last used."""
    trial = Trial()
    send(trial.open(), 1, 1)
    trial.second()
    interval = weakref.ref(trial.meter.take(trial.now))
    trial.second()
    assert interval() is None


def test_a_taken_interval_is_forgotten_key_by_key() -> None:
    trial = Trial()
    for topic in ("a", "b", "c"):
        send(trial.open(topic), 1, 1)
    trial.second()
    interval = trial.meter.take(trial.now)
    left = [len(interval) for _ in interval.drain()]
    assert left == [2, 1, 0]


def test_a_producer_is_billed_for_what_is_confirmed_and_limited_by_what_is_sent() -> None:
    trial = Trial()
    account = trial.open()
    send(account, 3, 30, receipt=False)
    sums = trial.only()
    assert (sums.messages, sums.bytes) == (0, 0)
    assert (sums.sent_messages, sums.sent_bytes) == (3, 30)
    account.receipts += 1
    sums = trial.only()
    assert (sums.messages, sums.bytes, sums.sent_messages) == (3, 30, 0)


def test_a_consumer_is_billed_for_what_it_gets() -> None:
    trial = Trial()
    send(trial.open(action=Action.CONSUME), 3, 30, receipt=False)
    ((key, sums),) = trial.taken().items()
    assert (key.operation, key.subscription) == ("deliver", "sub")
    assert (sums.messages, sums.frames, sums.bytes) == (3, 1, 30)


def test_an_account_that_closes_keeps_its_share() -> None:
    trial = Trial()
    account = trial.open()
    send(account, 3, 30)
    trial.book.close(account)
    trial.book.close(account)
    assert trial.only().messages == 3
    assert trial.meter._followed == {}


def test_an_account_that_is_not_used_has_no_record() -> None:
    trial = Trial()
    trial.book.close(trial.open())
    trial.open()
    assert trial.taken() == {}


def test_producers_of_one_key_are_one_record() -> None:
    trial = Trial()
    for _ in range(3):
        send(trial.open(), 1, 10)
    sums = trial.only()
    assert (sums.messages, sums.open) == (3, 3)


@pytest.mark.parametrize("other", [{"topic": "b"}, {"principal": "bob"}, {"principal": None}])
def test_other_topics_and_principals_have_records_of_their_own(other: dict[str, str]) -> None:
    trial = Trial()
    send(trial.open(), 1, 1)
    send(trial.open(**other), 1, 1)  # type: ignore[arg-type]
    assert len(trial.taken()) == 2


def test_a_peak_is_that_of_all_producers_of_a_key_in_one_second() -> None:
    trial = Trial()
    both = trial.open(), trial.open()
    for account in both:
        send(account, 10, 100)
    trial.second()
    send(both[0], 15, 10)
    sums = trial.only()
    assert (sums.peak_messages, sums.peak_bytes, sums.messages) == (20, 200, 35)


def test_waits_are_told_by_rule() -> None:
    trial, limiter = Trial(), Limiter()
    account = trial.open()
    limiter.admit(account, (messages(1, key="slow"),), 0.0)
    for now in (0.0, 0.1):
        if limiter.wants(account, now):
            send(account, 5, 5)
    account.queued = 700
    for grant in limiter.hold_round(6.0):
        grant.account.grant(grant.messages, grant.bytes)
    account.queued = 0
    waits = trial.only().waits
    assert waits["slow"][0] == 1
    assert waits["slow"][1] == pytest.approx(5.9)
    assert trial.taken() == {}


def test_bytes_that_wait_are_told_while_nothing_passes() -> None:
    trial = Trial()
    account = trial.open()
    account.queued = 700
    assert trial.only().held == 700


def test_refused_frames_and_errors_are_told() -> None:
    trial = Trial()
    account = trial.open()
    account.refused += 2
    send(account, 1, 1)
    account.errors += 1
    sums = trial.only()
    assert (sums.refused, sums.errors) == (2, 1)


def test_keys_beyond_the_bound_are_counted_together_by_tenant() -> None:
    trial = Trial(most=2)
    for number in range(5):
        send(trial.open(f"persistent://acme/n/{number}"), 1, 10)
    taken = trial.taken()
    assert len(taken) == 3
    folded = next(it for it in taken if it.principal == OTHER)
    assert folded.topic is not None
    assert folded.topic.tenant == "acme"
    assert taken[folded].messages == 3


def test_accounts_may_open_and_close_during_a_look() -> None:
    trial = Trial()
    accounts = [trial.open(f"t{number}") for number in range(2 * LOOKS_AT_ONCE)]
    look = trial.meter.look()
    next(look)
    for account in accounts:
        send(account, 1, 1)
        trial.book.close(account)
    send(trial.open("late"), 1, 1)
    for _ in look:
        pass
    assert sum(it.messages for it in trial.taken().values()) == len(accounts) + 1


# -- connections -----------------------------------------------------------------------------------

CALLER = Caller("pulsar", "l", "c", 1, "192.0.2.77", "alice", "lib", "token")


def test_connections_are_told_by_the_time_for_which_they_were_open() -> None:
    trial = Trial()
    key = trial.meter.connected(CALLER, 0.0)
    trial.meter.connected(CALLER, 0.5)
    trial.meter.disconnected(key, 0.75)
    ((found, sums),) = trial.meter.take(1.0).drain()
    assert (found.operation, found.principal, found.network) == ("connect", "alice", "192.0.2.0/24")
    assert (sums.milliseconds, sums.open) == (1250, 2)


def test_an_open_connection_is_told_in_each_interval_until_it_ends() -> None:
    trial = Trial()
    key = trial.meter.connected(CALLER, 0.0)
    told = []
    for now in (10.0, 20.0):
        told += [it.milliseconds for _, it in trial.meter.take(now).drain()]
    trial.meter.disconnected(key, 25.0)
    told += [it.milliseconds for _, it in trial.meter.take(30.0).drain()]
    assert told == [10_000, 10_000, 5_000]
    assert list(trial.meter.take(40.0).drain()) == []


# -- names -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("host", "network"),
    [
        ("192.0.2.77", "192.0.2.0/24"),
        ("2001:db8:1:2::3", "2001:db8:1::/48"),
        ("fe80::1%eth0", "fe80::/48"),
        ("no address", "no address"),
    ],
)
def test_a_network_stands_for_an_address(host: str, network: str) -> None:
    assert network_of(host) == network


def test_principals_and_addresses_can_be_kept_out() -> None:
    trial = Trial(Naming(lambda name: f"p-{len(name)}", None))
    send(trial.open(), 1, 1)
    ((key, _),) = trial.taken().items()
    assert (key.principal, key.network) == ("p-5", None)


@pytest.mark.parametrize(("client_ids", "expected"), [(False, None), (True, "billing")])
def test_records_name_client_ids_where_somebody_wants_them(
    client_ids: bool, expected: str | None
) -> None:
    trial = Trial(Naming(client_ids=client_ids))
    caller = Caller("kafka", "l", "main", client_id="billing")
    send(trial.book.open(Action.PRODUCE, Subject(caller, topic_of("a"))), 1, 1)
    trial.meter.connected(caller, trial.now)
    assert {key.client_id for key in trial.taken()} == {expected}
