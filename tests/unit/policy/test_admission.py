"""Whom rules let in: numbers that are full, limits that reject, what comes too often."""

from __future__ import annotations

from typing import Any

from gateway.policy.matching import RuleSet
from gateway.policy.rules import Rule
from gateway.policy.shaping import Shaping
from gateway.wire.account import Account, Action
from gateway.wire.contract import Denial, Refusal
from gateway.wire.services import Again
from gateway.wire.subject import Subject
from tests.support.subjects import subject_of

ACME = subject_of("acme/web/orders")
OTHER = subject_of("other/web/orders")


def rules(*parts: dict[str, Any]) -> RuleSet:
    return RuleSet.compile(
        Rule.model_validate({"id": f"r{number}", **part}) for number, part in enumerate(parts)
    )


class World:
    """Shaping, and who is open."""

    def __init__(self, *parts: dict[str, Any]) -> None:
        self.shaping = Shaping(rules(*parts))
        self.now = 1000.0

    def opens(self, subject: Subject = ACME, action: Action = Action.PRODUCE) -> Account:
        account = Account(action, subject)
        assert self.shaping.admit(account, self.now) is None
        return account

    def refused(self, subject: Subject = ACME, action: Action = Action.PRODUCE) -> str:
        denial = self.shaping.admit(Account(action, subject), self.now)
        assert denial is not None
        assert denial.refusal is Refusal.FULL
        return denial.text

    def closes(self, account: Account) -> None:
        self.shaping.release(account, self.now)

    def adopts(self, *parts: dict[str, Any]) -> None:
        for account in self.shaping.adopt(rules(*parts)):
            self.shaping.renew(account, self.now)

    def sends_all_it_may(self, account: Account) -> None:
        while not account.held or self.shaping.limiter.wants(account, self.now):
            account.messages += 1

    def wait(self, action: Action, subject: Subject = ACME) -> float | Denial:
        answer = self.shaping.wait(action, subject, self.now)
        assert not isinstance(answer, Again)  # that is only where processes share
        return answer


# -- numbers -----------------------------------------------------------------------------------


def test_one_more_than_the_number_is_refused_by_name() -> None:
    world = World({"limit": {"producers": 2}})
    world.opens()
    first = world.opens()
    assert world.refused() == "rule r0 allows 2 producers"
    world.closes(first)
    world.opens()


def test_who_is_refused_is_under_no_limit() -> None:
    world = World({"limit": {"producers": 1, "publish": {"messages": "10/s"}}})
    world.opens()
    (limit,) = world.shaping.limiter.limits()
    world.refused()
    assert limit.accounts == 1
    assert len(world.shaping._accounts) == 1


def test_producers_and_consumers_are_counted_apart() -> None:
    world = World({"limit": {"producers": 1, "consumers": 1}})
    world.opens()
    world.opens(action=Action.CONSUME)
    assert world.refused(action=Action.CONSUME) == "rule r0 allows 1 consumers"


def test_each_tenant_has_its_own_number() -> None:
    world = World({"limit": {"producers": 1}, "per": "tenant"})
    world.opens()
    world.opens(OTHER)
    world.refused(OTHER)


def test_a_reload_closes_nobody_and_counts_everybody_anew() -> None:
    world = World({"limit": {"producers": 3}})
    opened = [world.opens(), world.opens(), world.opens(OTHER)]
    world.adopts({"limit": {"producers": 2}, "per": "tenant"})
    world.refused(ACME)
    world.opens(OTHER)
    world.closes(opened[0])
    world.opens(ACME)


def test_a_number_that_comes_with_a_reload_knows_who_is_open() -> None:
    world = World({"limit": {"lookups": "1/s"}})
    opened = world.opens()
    world.adopts({"limit": {"producers": 1}})
    world.refused()
    world.closes(opened)
    world.opens()


def test_a_shadow_refuses_nobody() -> None:
    world = World({"limit": {"producers": 1}, "mode": "shadow"})
    for _ in range(3):
        world.opens()
    (figures,) = world.shaping.figures(world.now)
    assert (figures.what, figures.mode, figures.refused) == ("producers", "shadow", 2)


# -- limits that reject ------------------------------------------------------------------------

REJECT = {"limit": {"publish": {"messages": "10/s"}}, "action": "reject"}


def test_a_limit_that_is_spent_rejects_a_producer() -> None:
    world = World(REJECT)
    world.opens()
    (limit,) = world.shaping.limiter.limits()
    limit.meter.take(limit.meter.available(world.now), world.now)
    assert world.refused() == "rule r0 has no room for publish.messages now"
    world.now += 1
    world.opens()


def test_who_waits_comes_before_who_is_new() -> None:
    world = World(REJECT)
    waiting = world.opens()
    world.sends_all_it_may(waiting)
    world.now += 0.2
    world.refused()
    world.closes(waiting)
    world.opens()


def test_a_producer_that_is_open_is_held_as_by_any_other_rule() -> None:
    world = World(REJECT)
    opened = world.opens()
    world.sends_all_it_may(opened)
    assert opened.held
    world.adopts(REJECT)
    assert opened in world.shaping._accounts


def test_one_that_is_opened_again_is_not_rejected() -> None:
    """Or one that a limit had reset could not come back while it is above that limit."""
    world = World(REJECT, {"limit": {"producers": 2}})
    world.sends_all_it_may(world.opens())
    assert world.shaping.admit(Account(Action.PRODUCE, ACME), world.now, again=True) is None
    full = world.shaping.admit(Account(Action.PRODUCE, ACME), world.now, again=True)
    assert full == Denial(Refusal.FULL, "rule r1 allows 2 producers")


def test_consumers_are_not_rejected() -> None:
    world = World({"limit": {"dispatch": {"messages": "1/s"}}, "action": "reject"}, REJECT)
    world.sends_all_it_may(world.opens())
    world.opens(action=Action.CONSUME)


def test_a_shadow_rejects_nobody() -> None:
    world = World({**REJECT, "mode": "shadow"}, {"limit": {"publish": {"messages": "10/s"}}})
    world.sends_all_it_may(world.opens())
    world.opens()


# -- how often ---------------------------------------------------------------------------------


def test_what_no_rule_speaks_of_is_not_asked_for() -> None:
    assert World({"limit": {"publish": {"messages": "1/s"}, "producers": 1}}).shaping.paced == set()
    world = World({"limit": {"lookups": "1/s"}}, {"limit": {"consumer_creations": "1/s"}})
    assert world.shaping.paced == {Action.LOOKUP, Action.CONSUME}
    world.adopts({"limit": {"connects": "1/s"}})
    assert world.shaping.paced == {Action.CONNECT}


def test_each_action_waits_for_its_own_limits() -> None:
    world = World({"limit": {"lookups": "1/s", "producer_creations": "1/s", "producers": 9}})
    assert [world.wait(Action.PRODUCE), world.wait(Action.LOOKUP)] == [0, 0]
    assert [world.wait(Action.CONNECT), world.wait(Action.CONSUME)] == [0, 0]
    waits = [world.wait(Action.PRODUCE) for _ in range(6)]
    assert all(isinstance(wait, float) and wait > 0 for wait in waits[:4])
    assert waits[-1] == Denial(Refusal.TOO_OFTEN, "rule r0 allows no more producer creations now")


def test_a_rule_that_rejects_says_so() -> None:
    world = World({"limit": {"producer_creations": "1/s"}, "action": "reject"})
    assert world.wait(Action.PRODUCE) == 0
    denial = world.wait(Action.PRODUCE)
    assert isinstance(denial, Denial)
    assert denial.refusal is Refusal.FULL


def test_others_are_not_asked() -> None:
    world = World({"limit": {"lookups": "1/h"}, "match": {"tenant": "acme"}})
    assert world.wait(Action.LOOKUP, ACME) == 0
    assert isinstance(world.wait(Action.LOOKUP, ACME), Denial)
    assert [world.wait(Action.LOOKUP, OTHER) for _ in range(3)] == [0, 0, 0]


def test_a_reload_goes_on_from_what_was_earned() -> None:
    world = World({"limit": {"lookups": "1/h"}})
    world.wait(Action.LOOKUP)
    world.adopts({"limit": {"lookups": "2/h"}})
    assert isinstance(world.wait(Action.LOOKUP), Denial)
