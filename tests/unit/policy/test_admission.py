"""Denials of rules: by concurrency limits, by `action: reject`, and of requests that are too
many."""

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
    """Shaping, and the time."""

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

    def sends_all_it_can(self, account: Account) -> None:
        while not account.held or self.shaping.limiter.wants(account, self.now):
            account.messages += 1

    def wait(self, action: Action, subject: Subject = ACME) -> float | Denial:
        answer = self.shaping.wait(action, subject, self.now)
        assert not isinstance(answer, Again)  # this comes only where processes share a limit
        return answer


# -- concurrency -------------------------------------------------------------------------------


def test_a_denial_names_the_rule_of_the_concurrency_limit() -> None:
    world = World({"limit": {"producers": 2}})
    world.opens()
    first = world.opens()
    assert world.refused() == "rule r0 allows 2 producers"
    world.closes(first)
    world.opens()


def test_a_refused_account_is_under_no_limit() -> None:
    world = World({"limit": {"producers": 1, "publish": {"messages": "10/s"}}})
    world.opens()
    (limit,) = world.shaping.limiter.limits()
    world.refused()
    assert limit.accounts == 1
    assert len(world.shaping._accounts) == 1


def test_producers_and_consumers_are_counted_separately() -> None:
    world = World({"limit": {"producers": 1, "consumers": 1}})
    world.opens()
    world.opens(action=Action.CONSUME)
    assert world.refused(action=Action.CONSUME) == "rule r0 allows 1 consumers"


def test_each_tenant_has_its_own_concurrency_limit() -> None:
    world = World({"limit": {"producers": 1}, "per": "tenant"})
    world.opens()
    world.opens(OTHER)
    world.refused(OTHER)


def test_a_reload_closes_no_account_and_counts_all_anew() -> None:
    world = World({"limit": {"producers": 3}})
    opened = [world.opens(), world.opens(), world.opens(OTHER)]
    world.adopts({"limit": {"producers": 2}, "per": "tenant"})
    world.refused(ACME)
    world.opens(OTHER)
    world.closes(opened[0])
    world.opens(ACME)


def test_a_concurrency_limit_of_new_rules_counts_open_accounts() -> None:
    world = World({"limit": {"lookups": "1/s"}})
    opened = world.opens()
    world.adopts({"limit": {"producers": 1}})
    world.refused()
    world.closes(opened)
    world.opens()


def test_a_shadow_of_a_concurrency_limit_refuses_nobody() -> None:
    world = World({"limit": {"producers": 1}, "mode": "shadow"})
    for _ in range(3):
        world.opens()
    (figures,) = world.shaping.figures(world.now)
    assert (figures.what, figures.mode, figures.refused) == ("producers", "shadow", 2)


# -- limits that reject ------------------------------------------------------------------------

REJECT = {"limit": {"publish": {"messages": "10/s"}}, "action": "reject"}


def test_a_limit_without_units_rejects_a_producer() -> None:
    world = World(REJECT)
    world.opens()
    (limit,) = world.shaping.limiter.limits()
    limit.meter.take(limit.meter.available(world.now), world.now)
    assert world.refused() == "rule r0 has no room for publish.messages now"
    world.now += 1
    world.opens()


def test_a_new_producer_is_rejected_while_another_waits() -> None:
    world = World(REJECT)
    waiting = world.opens()
    world.sends_all_it_can(waiting)
    world.now += 0.2
    world.refused()
    world.closes(waiting)
    world.opens()


def test_an_open_producer_is_held_by_a_rule_that_rejects() -> None:
    world = World(REJECT)
    opened = world.opens()
    world.sends_all_it_can(opened)
    assert opened.held
    world.adopts(REJECT)
    assert opened in world.shaping._accounts


def test_a_producer_that_is_opened_again_is_not_rejected() -> None:
    """Otherwise a producer could not come back after a reset while it is above its limit."""
    world = World(REJECT, {"limit": {"producers": 2}})
    world.sends_all_it_can(world.opens())
    assert world.shaping.admit(Account(Action.PRODUCE, ACME), world.now, again=True) is None
    full = world.shaping.admit(Account(Action.PRODUCE, ACME), world.now, again=True)
    assert full == Denial(Refusal.FULL, "rule r1 allows 2 producers")


def test_consumers_are_not_rejected() -> None:
    world = World({"limit": {"dispatch": {"messages": "1/s"}}, "action": "reject"}, REJECT)
    world.sends_all_it_can(world.opens())
    world.opens(action=Action.CONSUME)


def test_a_shadow_rejects_nobody() -> None:
    world = World({**REJECT, "mode": "shadow"}, {"limit": {"publish": {"messages": "10/s"}}})
    world.sends_all_it_can(world.opens())
    world.opens()


# -- requests ----------------------------------------------------------------------------------


def test_actions_without_a_request_limit_are_not_paced() -> None:
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


def test_a_rule_that_rejects_refuses_a_producer_as_full() -> None:
    world = World({"limit": {"producer_creations": "1/s"}, "action": "reject"})
    assert world.wait(Action.PRODUCE) == 0
    denial = world.wait(Action.PRODUCE)
    assert isinstance(denial, Denial)
    assert denial.refusal is Refusal.FULL


def test_other_subjects_are_not_limited() -> None:
    world = World({"limit": {"lookups": "1/h"}, "match": {"tenant": "acme"}})
    assert world.wait(Action.LOOKUP, ACME) == 0
    assert isinstance(world.wait(Action.LOOKUP, ACME), Denial)
    assert [world.wait(Action.LOOKUP, OTHER) for _ in range(3)] == [0, 0, 0]


def test_a_request_limit_keeps_its_units_at_a_reload() -> None:
    world = World({"limit": {"lookups": "1/h"}})
    world.wait(Action.LOOKUP)
    world.adopts({"limit": {"lookups": "2/h"}})
    assert isinstance(world.wait(Action.LOOKUP), Denial)
