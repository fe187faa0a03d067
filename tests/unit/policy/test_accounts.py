"""The book of accounts: open accounts and totals per topic."""

from __future__ import annotations

import sys
import tracemalloc

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from gateway.policy.accounts import ACCOUNTS_AT_ONCE, FOLDED_AT_ONCE, AccountBook
from gateway.telemetry.figures import TopicFigures, Totals, others_of
from gateway.wire.account import Account, Action
from gateway.wire.subject import NOBODY, TopicName
from tests.support.subjects import subject_of, topic_of

NOTHING = Totals(0, 0, 0, 0, 0)
T = subject_of("t")
OTHER = others_of("public")


def passes(
    account: Account, messages: int = 1, size: int = 100, frames: int = 1, receipts: int = 0
) -> None:
    account.messages += messages
    account.bytes += size
    account.surplus += messages - frames
    account.receipts += receipts


def figures_of(book: AccountBook, topic: TopicName) -> TopicFigures:
    (found,) = (figures for figures in book.topics() if figures.topic == topic)
    return found


def test_open_accounts_are_summed_by_action() -> None:
    book = AccountBook()
    passes(book.open(Action.PRODUCE, T), messages=5, size=500, frames=2, receipts=1)
    passes(book.open(Action.PRODUCE, T), messages=1, size=50)
    passes(book.open(Action.CONSUME, T), messages=7, size=700, frames=3)
    found = figures_of(book, topic_of("t"))
    assert found.produced == Totals(messages=6, bytes=550, frames=3, receipts=1, open=2)
    assert found.consumed == Totals(messages=7, bytes=700, frames=3, receipts=0, open=1)


def test_closed_accounts_stay_in_the_totals() -> None:
    book = AccountBook()
    first, second = book.open(Action.PRODUCE, T), book.open(Action.PRODUCE, T)
    passes(first, messages=5)
    passes(second, messages=2)
    book.close(first)
    assert figures_of(book, topic_of("t")).produced[:1] == (7,)
    assert figures_of(book, topic_of("t")).produced.open == 1
    book.close(second)
    assert figures_of(book, topic_of("t")).produced[:1] == (7,)
    assert figures_of(book, topic_of("t")).produced.open == 0


def test_a_second_close_changes_nothing() -> None:
    book = AccountBook()
    account, other = book.open(Action.PRODUCE, T), book.open(Action.PRODUCE, T)
    passes(account, messages=5)
    for _ in range(2):
        book.close(account)
    assert figures_of(book, topic_of("t")).produced.messages == 5
    book.close(other)
    book.close(account)
    assert figures_of(book, topic_of("t")).produced.messages == 5


def test_closing_an_account_that_the_book_did_not_open_changes_nothing() -> None:
    book = AccountBook()
    stranger = Account(Action.PRODUCE, T)
    passes(stranger)
    book.open(Action.PRODUCE, T)
    book.close(stranger)
    assert figures_of(book, topic_of("t")).produced == NOTHING._replace(open=1)


def test_an_account_carries_its_subject() -> None:
    subject = subject_of("t", "s", principal="alice", host="::1", library="Pulsar-CPP-v4.2.0")
    book = AccountBook()
    for action in (Action.CONSUME, Action.CONSUME, Action.LOOKUP):
        assert book.open(action, subject).subject == subject


def test_accounts_of_one_topic_share_its_name() -> None:
    book = AccountBook()
    name, same_name = (b"topic".decode() for _ in range(2))
    assert name is not same_name
    first = book.open(Action.PRODUCE, subject_of(name))
    passes(first)
    book.close(first)
    second = book.open(Action.CONSUME, subject_of(same_name))
    assert second.topic is first.topic
    assert second.subject.topic is first.subject.topic


def test_accounts_of_one_connection_share_its_caller() -> None:
    book = AccountBook()
    first, second = (book.open(Action.PRODUCE, T.about(topic_of(name))) for name in "ab")
    assert first.subject.caller is second.subject.caller is T.caller


def test_a_lookup_is_not_kept() -> None:
    book = AccountBook()
    account = book.open(Action.LOOKUP, T)
    assert (account.topic, account.held) == ("persistent://public/default/t", False)
    book.close(account)
    assert list(book.topics()) == []


def test_a_topic_on_which_nothing_passed_is_forgotten() -> None:
    book = AccountBook()
    book.close(book.open(Action.PRODUCE, T))
    assert list(book.topics()) == []


def test_the_longest_idle_topic_is_folded_beyond_the_bound() -> None:
    book = AccountBook(topics_kept=2)
    for topic in ("a", "b", "a", "c"):
        account = book.open(Action.PRODUCE, subject_of(topic))
        passes(account)
        book.close(account)
    kept = {it.topic: it.produced.messages for it in book.topics()}
    assert kept == {OTHER: 1, topic_of("a"): 2, topic_of("c"): 1}


def test_topics_are_folded_beyond_the_bound_of_their_names_bytes() -> None:
    book = AccountBook(names_kept=10_000)
    for number in range(100):
        account = book.open(Action.PRODUCE, subject_of("x" * 970 + f"{number:02}"))
        passes(account)
        book.close(account)
    kept = {it.topic.name[-2:]: it.produced.messages for it in book.topics()}
    assert kept == {OTHER.name[-2:]: 91, **{str(number): 1 for number in range(91, 100)}}


def test_names_that_are_forgotten_make_room() -> None:
    book = AccountBook(names_kept=10_000)
    kept = book.open(Action.PRODUCE, subject_of("kept"))
    passes(kept)
    book.close(kept)
    for number in range(100):
        book.close(book.open(Action.PRODUCE, subject_of(f"{number}" + "x" * 1000)))
    assert figures_of(book, topic_of("kept")).produced.messages == 1


def shown(book: AccountBook) -> dict[TopicName, tuple[int, int]]:
    """Return consumed messages and open consumers by topic."""
    found: dict[TopicName, tuple[int, int]] = {}
    for topic, _, it, *_ in book.topics():
        messages, here = found.get(topic, (0, 0))
        found[topic] = messages + it.messages, here + it.open
    return found


def test_topics_opened_beyond_the_bound_have_no_figures_of_their_own() -> None:
    book = AccountBook(topics_kept=2)
    a, b, c = map(topic_of, "abc")
    accounts = {topic: book.open(Action.CONSUME, subject_of(topic)) for topic in "abcd"}
    for account in accounts.values():
        passes(account)
    assert {account.subject.topic for account in accounts.values()} == set(map(topic_of, "abcd"))
    assert shown(book) == {a: (1, 1), b: (1, 1), OTHER: (2, 2)}
    accounts["again"] = book.open(Action.CONSUME, subject_of("c"))
    assert shown(book) == {a: (1, 1), b: (1, 1), OTHER: (2, 3)}
    book.close(accounts["again"])
    book.close(accounts["c"])
    assert shown(book) == {a: (1, 1), b: (1, 1), OTHER: (2, 1)}
    book.close(accounts["a"])
    passes(book.open(Action.CONSUME, subject_of("c")))
    assert shown(book) == {b: (1, 1), c: (1, 1), OTHER: (3, 1)}
    book.close(accounts["d"])
    assert shown(book) == {b: (1, 1), c: (1, 1), OTHER: (3, 0)}


def test_open_topics_are_bounded_by_the_bytes_of_their_names_as_metrics_show_them() -> None:
    for name in ("x" * 900, '"' * 450, "\\" * 450, "\U0001f600" * 225):
        book = AccountBook(names_kept=10_000)
        for number in range(100):
            topic = TopicName("", "", f"{number:02}{name}")
            book.open(Action.CONSUME, NOBODY.about(topic))
        assert len(shown(book)) == 11


def test_a_topic_without_figures_of_its_own_takes_no_room() -> None:
    book = AccountBook(topics_kept=1, names_kept=10_000)
    first = book.open(Action.CONSUME, subject_of("first"))
    others = [book.open(Action.CONSUME, subject_of(f"{n}" + "x" * 500)) for n in range(100)]
    for account in (first, *others):
        book.close(account)
    assert book._names == 0
    book.open(Action.CONSUME, subject_of("second"))
    assert shown(book) == {topic_of("second"): (0, 1)}


def test_a_topic_of_many_accounts_comes_in_parts_that_add_up() -> None:
    book = AccountBook()
    accounts = [book.open(Action.CONSUME, T) for _ in range(2 * ACCOUNTS_AT_ONCE + 1)]
    for account in accounts:
        passes(account)
    book.close(accounts.pop())
    parts = list(book.topics())
    assert max(it.consumed.open for it in parts) <= ACCOUNTS_AT_ONCE
    assert shown(book) == {topic_of("t"): (2 * ACCOUNTS_AT_ONCE + 1, 2 * ACCOUNTS_AT_ONCE)}


def test_accounts_that_close_between_two_parts_count_once() -> None:
    book = AccountBook()
    accounts = [book.open(Action.PRODUCE, T) for _ in range(3 * ACCOUNTS_AT_ONCE)]
    for account in accounts:
        passes(account)
    messages = 0
    for part in book.topics():
        messages += part.produced.messages
        for _ in range(100):
            book.close(accounts.pop())
    assert messages == 3 * ACCOUNTS_AT_ONCE


def test_a_folded_topic_starts_again_from_zero_and_folded_totals_stay() -> None:
    book = AccountBook(topics_kept=1)
    for topic in ("a", "b", "a"):
        account = book.open(Action.PRODUCE, subject_of(topic))
        passes(account)
        book.close(account)
    kept = {it.topic: it.produced.messages for it in book.topics()}
    assert kept == {OTHER: 2, topic_of("a"): 1}


def test_the_book_may_change_while_it_is_read() -> None:
    book = AccountBook(topics_kept=3)
    accounts = [book.open(Action.PRODUCE, subject_of(topic)) for topic in "abc"]
    for account in accounts:
        passes(account)
    reading = book.topics()
    seen = [next(reading)]
    for account in accounts:
        book.close(account)
    for topic in "def":
        book.open(Action.PRODUCE, subject_of(topic))
    seen += reading
    expected = [(topic_of("a"), 1), (topic_of("b"), 1), (topic_of("c"), 1)]
    assert [(it.topic, it.produced.messages) for it in seen] == expected
    assert figures_of(book, OTHER).produced.messages == 3


def test_an_idle_pair_costs_little() -> None:
    book = AccountBook()
    names = [f"persistent://public/default/topic-{n}" for n in range(2000)]
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    accounts = [book.open(Action.PRODUCE, T.about(topic_of(name))) for name in names]
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # A pair that is idle may have 5 KB in all.
    assert (after - before) / len(accounts) < 1100


def test_an_idle_topic_costs_little() -> None:
    book = AccountBook()
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    for n in range(2000):
        for action in (Action.PRODUCE, Action.CONSUME):
            account = book.open(action, subject_of(f"persistent://public/default/topic-{n}"))
            passes(account, messages=1000, size=1_000_000, frames=500, receipts=500)
            book.close(account)
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (after - before) / 2000 < 960
    assert sys.getsizeof(book) < 100


class Book(RuleBasedStateMachine):
    """No message is lost or counted twice, whatever topics are opened, closed and folded."""

    accounts: Bundle[Account] = Bundle("accounts")

    def __init__(self) -> None:
        super().__init__()
        self.book = AccountBook(topics_kept=2)
        self.passed = 0
        self.open = 0
        self.last: dict[TopicName, int] = {}

    @rule(target=accounts, topic=st.sampled_from("abcde"), action=st.sampled_from(list(Action)[:2]))
    def opens(self, topic: str, action: Action) -> Account:
        self.open += 1
        return self.book.open(action, subject_of(topic))

    @rule(account=accounts, messages=st.integers(0, 5))
    def passes(self, account: Account, messages: int) -> None:
        account.messages += messages
        self.passed += messages

    @rule(account=consumes(accounts), again=st.booleans())
    def closes(self, account: Account, again: bool) -> None:
        self.open -= 1
        for _ in range(1 + again):
            self.book.close(account)

    @invariant()
    def nothing_is_lost_or_doubled(self) -> None:
        sides = [side for it in self.book.topics() for side in (it.produced, it.consumed)]
        assert sum(side.messages for side in sides) == self.passed
        assert sum(side.open for side in sides) == self.open

    @invariant()
    def folded_totals_never_fall(self) -> None:
        found = [it for it in self.book.topics() if it.topic == OTHER]
        folded = sum(it.produced.messages + it.consumed.messages for it in found)
        assert folded >= self.last.get(OTHER, 0)
        self.last[OTHER] = folded


TestBook = Book.TestCase
TestBook.settings = settings(max_examples=50, stateful_step_count=30, deadline=None)


def test_subscriptions_are_counted_while_they_have_consumers() -> None:
    book = AccountBook()
    a, same, b = (
        book.open(Action.CONSUME, T._replace(subscription=name)) for name in ("a", "a", "b")
    )

    def subscriptions() -> int:
        (figures,) = book.topics()
        return figures.consumed.subscriptions

    passes(a, messages=1)
    assert subscriptions() == 2
    book.close(a)
    assert subscriptions() == 2
    for account in (same, same, b):
        book.close(account)
    assert subscriptions() == 0


def test_what_consumers_have_asked_for_is_added_up() -> None:
    book = AccountBook()
    for asked, got in ((10, 4), (5, 5), (0, 3)):
        account = book.open(Action.CONSUME, T)
        account.asked = asked
        passes(account, messages=got)
    (figures,) = book.topics()
    assert figures.consumed.wanted == 6


# -- idle topics -----------------------------------------------------------------------------------


def aged(book: AccountBook, now: float) -> None:
    for _ in book.age(now):
        pass


def test_a_topic_that_is_idle_for_too_long_is_folded_and_its_counts_are_kept() -> None:
    book = AccountBook(idle_kept=100.0)
    aged(book, 0.0)
    for name in ("persistent://t/n/old", "persistent://t/n/young"):
        account = book.open(Action.PRODUCE, T.about(topic_of(name)))
        account.count(3)
        book.close(account)
        aged(book, 60.0)
    aged(book, 120.0)
    found = {it.topic.name: it.produced.messages for it in book.topics()}
    assert found == {"persistent://t/n/young": 3, OTHER.name: 3}
    aged(book, 1000.0)
    assert {it.topic.name: it.produced.messages for it in book.topics()} == {OTHER.name: 6}


def test_an_open_topic_is_never_too_old() -> None:
    book = AccountBook(idle_kept=100.0)
    account = book.open(Action.PRODUCE, T.about(topic_of("persistent://t/n/busy")))
    account.count(3)
    aged(book, 1e9)
    assert [it.topic.name for it in book.topics()] == ["persistent://t/n/busy"]


def test_many_idle_topics_are_folded_in_slices() -> None:
    book = AccountBook(idle_kept=1.0)
    for number in range(3 * FOLDED_AT_ONCE):
        account = book.open(Action.PRODUCE, T.about(topic_of(f"persistent://t/n/{number}")))
        account.count(1)
        book.close(account)
    assert sum(1 for _ in book.age(10.0)) == 3


def test_topics_are_kept_without_a_time() -> None:
    book = AccountBook()
    account = book.open(Action.PRODUCE, T.about(topic_of("persistent://t/n/old")))
    account.count(3)
    book.close(account)
    aged(book, 1e9)
    assert [it.topic.name for it in book.topics()] == ["persistent://t/n/old"]
