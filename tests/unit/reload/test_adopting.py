"""New rules are put in force while producers are open."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gateway.control.shaper import Shaper
from gateway.plane.deadlines import Deadlines
from gateway.policy.access import Access, Default
from gateway.policy.dimensions import Dimension
from gateway.policy.keys import Key
from gateway.policy.matching import RuleSet
from gateway.policy.rules import Rule
from gateway.telemetry.figures import Denied
from gateway.wire.account import Account, Action, Right
from gateway.wire.contract import Denial
from gateway.wire.counters import ENDLESS
from tests.support.examples import examples
from tests.support.subjects import subject_of
from tests.unit.reload.samples import rule


class Plane:
    """The part of a reactor that a shaper uses."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.deadlines = Deadlines(lambda: None)
        self.grant: Callable[[Account, int, int], None] = Account.grant
        self.revoked: dict[Account, Denial] = {}

    def revoke(self, account: Account, denial: Denial) -> None:
        self.revoked[account] = denial

    def clock(self) -> float:
        return self.now


class House:
    """A shaper with producers that send frames of one message."""

    def __init__(self, *rules: Rule, access: Default = "open") -> None:
        self.plane = Plane()
        compiled = RuleSet.compile(rules)
        self.access = Access(compiled, {"clients": access}, lambda _: None)
        self.shaper = Shaper(compiled, self.plane, access=self.access)  # type: ignore[arg-type]

    def opens(
        self,
        tenant: str = "acme",
        *,
        action: Action = Action.PRODUCE,
        principal: str = "app",
        subscription: str | None = None,
    ) -> Account:
        topic = f"persistent://{tenant}/web/orders"
        client = subject_of(
            topic,
            subscription,
            protocol="pulsar",
            listener="clients",
            connection=1,
            host="10.1.2.3",
            principal=principal,
        )
        account = Account(action, client)
        self.shaper.admit(account, again=False)
        return account

    def sends(self, account: Account) -> bool:
        """Send a frame. Return true if it passed at once; otherwise it is dropped."""
        if account.held and not self.shaper.wants(account):
            return False
        account.messages += 1
        account.bytes += 100
        return True

    def floods(self, account: Account) -> int:
        """Send frames until the account is held. Return how many passed."""
        return next(number for number in range(10_000) if not self.sends(account))

    def adopts(self, *rules: Rule) -> None:
        for _ in self.shaper.adopt(RuleSet.compile(rules)):
            pass

    def runs(self, seconds: float) -> None:
        """Run the plane's due timers."""
        end = self.plane.now + seconds
        while (head := self.plane.deadlines.head) is not None and head <= end:
            self.plane.now = max(self.plane.now, head)
            self.plane.deadlines.expire(self.plane.now)
        self.plane.now = end


def test_an_open_producer_gets_its_new_limit_at_once() -> None:
    house = House()
    account = house.opens()
    assert house.sends(account)
    assert account.messages_ceiling == ENDLESS
    house.adopts(rule("all", "10/s"))
    assert house.floods(account) == 2  # a tenth of a second, and one


def test_a_lease_of_the_old_rules_ends() -> None:
    house = House(rule("all", "1000000/s"))
    account = house.opens()
    assert house.sends(account)
    assert account.messages_ceiling > account.messages
    house.adopts(rule("all", "10/s"))
    assert account.held
    assert house.floods(account) <= 2


def test_a_producer_opened_meanwhile_gets_the_new_rules() -> None:
    house = House()
    accounts = [house.opens() for _ in range(3)]
    steps = house.shaper.adopt(RuleSet.compile([rule("all", "10/s")]))
    next(steps)
    newcomer = house.opens()
    assert [it.held for it in (*accounts, newcomer)] == [True, False, False, True]
    assert len(list(steps)) == 2, "who is new is not looked at again"
    assert all(it.held for it in accounts)


def test_a_producer_closed_meanwhile_is_left_out() -> None:
    house = House()
    accounts = [house.opens() for _ in range(2)]
    steps = house.shaper.adopt(RuleSet.compile([rule("all", "10/s")]))
    next(steps)
    house.shaper.release(accounts[1])
    list(steps)
    assert [it.held for it in accounts] == [True, False]


def test_debt_to_an_unchanged_rule_remains() -> None:
    house = House(rule("stays", "10/s"))
    account = house.opens()
    assert house.sends(account)
    account.messages += 40  # a batch: four seconds
    assert not house.sends(account)
    house.adopts(rule("stays", "10/s"), rule("another", "100000/s"))
    house.runs(3.9)
    assert account.messages_ceiling <= account.messages
    house.runs(0.5)
    assert not account.held


def test_a_rule_that_expires_leaves_debt_to_the_others() -> None:
    both = [rule("stays", "10/s"), rule("ends", "1/h", expires="2026-12-24")]
    house = House(*both)
    account = house.opens()
    assert house.sends(account)
    account.messages += 40
    assert not house.sends(account)
    for _ in house.shaper.adopt(RuleSet.compile(both, math.inf)):
        pass
    house.runs(3.9)
    assert account.messages_ceiling <= account.messages
    house.runs(0.5)
    assert not account.held


def test_removing_a_rule_releases_its_waiters() -> None:
    house = House(rule("goes", "1/h"))
    account = house.opens()
    house.floods(account)
    assert account.held
    house.adopts()
    house.runs(0.1)
    assert account.messages_ceiling == account.bytes_ceiling == ENDLESS


def test_raising_a_rate_shortens_the_wait() -> None:
    house = House(rule("all", "1/h"))
    account = house.opens()
    house.floods(account)
    house.adopts(rule("all", "1000/s"))
    house.runs(0.1)
    assert not account.held


def test_unused_limits_are_forgotten() -> None:
    house = House(rule("goes", "10/s", per="tenant"))
    accounts = [house.opens(f"t-{number}") for number in range(10)]
    assert all(house.sends(it) for it in accounts)
    house.adopts(rule("new", "10/s"))
    house.runs(60)
    house.opens()
    assert [it.spec.key for it in house.shaper.shaping.limiter.limits()] == [
        Key("new", Dimension.PUBLISH_MESSAGES, ())
    ]


# -- rights ------------------------------------------------------------------------------------


def right(id: str, **parts: Any) -> Rule:
    return Rule.model_validate({"id": id} | parts)


def revoked(house: House, *rules: Rule) -> dict[Account, str]:
    """Adopt rules; return the accounts that lost their right, and why."""
    house.plane.revoked.clear()
    house.adopts(*rules)
    return {it: denial.text for it, denial in house.plane.revoked.items()}


def test_a_revoked_right_closes_those_that_had_it_and_no_others() -> None:
    both = right("all", allow=["produce", "consume"])
    house = House(both, access="closed")
    ours, theirs = house.opens(), house.opens(principal="other")
    elsewhere = house.opens("other")
    consumer = house.opens(action=Action.CONSUME, subscription="s")
    no = right("no", match={"principal": "app", "tenant": "acme"}, deny="produce")
    assert revoked(house, both, no) == {ours: "this client may not produce here: rule no denies it"}
    assert {theirs, elsewhere, consumer}.isdisjoint(house.plane.revoked)


def test_where_no_rule_allows_it_any_more_a_closed_listener_closes_it() -> None:
    produce, consume = right("p", allow="produce"), right("c", allow="consume")
    house = House(produce, consume, access="closed")
    producer, consumer = house.opens(), house.opens(action=Action.CONSUME, subscription="s")
    assert revoked(house, produce) == {
        consumer: "this client may not consume here: no rule allows it"
    }
    house.shaper.release(consumer)
    assert list(revoked(house)) == [producer]


def test_an_open_listener_closes_nothing_where_no_rule_allows_it_any_more() -> None:
    for access in ("open", "shadow"):
        house = House(right("p", allow="produce"), access=access)
        house.opens()
        assert revoked(house) == {}


def test_rights_that_stay_close_nothing() -> None:
    rules = right("p", allow="produce"), right("x", match={"tenant": "x"}, deny="produce")
    house = House(*rules, access="closed")
    house.opens()
    assert revoked(house, *rules) == {}
    assert house.access.denied == {}


def test_the_subscription_of_an_open_consumer_counts() -> None:
    house = House()
    mine, yours = (house.opens(action=Action.CONSUME, subscription=it) for it in ("mine", "yours"))
    no = right("no", match={"subscription": "yours"}, deny="consume")
    assert list(revoked(house, no)) == [yours]
    assert mine not in house.plane.revoked


def test_a_shadow_closes_nothing_and_counts_what_it_would_close() -> None:
    house = House()
    house.opens()
    house.opens(principal="other")
    trial = right("trial", match={"principal": "app"}, deny="produce", mode="shadow")
    assert revoked(house, trial) == {}
    assert house.access.denied == {Denied("clients", "trial", Right.PRODUCE, "shadow"): 1}


def test_a_reload_revokes_one_account_in_each_step_and_judges_what_asks_meanwhile() -> None:
    house = House()
    accounts = [house.opens() for _ in range(3)]
    steps = house.shaper.adopt(RuleSet.compile([right("no", deny="produce")]))
    next(steps)
    assert house.access.refuse(Right.PRODUCE, accounts[2].subject) is not None
    assert list(house.plane.revoked) == accounts[:1]
    next(steps)
    assert list(house.plane.revoked) == accounts[:2]
    list(steps)
    assert list(house.plane.revoked) == accounts


def test_limits_and_rights_change_together() -> None:
    house = House()
    ours, theirs = house.opens(), house.opens(principal="other")
    no = right("no", match={"principal": "app"}, deny="produce")
    assert list(revoked(house, no, rule("all", "10/s"))) == [ours]
    assert theirs.held


# -- whatever happens meanwhile ------------------------------------------------------------------

STAYS, RATE = rule("stays", "100/s"), 100
ANOTHER = [rule("another", "50/s", per="tenant"), rule("another", "200/s", mode="shadow")]

ACTIONS = st.one_of(
    st.tuples(st.just("sends"), st.integers(0, 5), st.integers(1, 30)),
    st.tuples(st.just("runs"), st.sampled_from([0.001, 0.02, 0.3, 2.0]), st.just(0)),
    st.tuples(st.just("reloads"), st.integers(0, 2), st.just(0)),
    st.tuples(st.just("steps"), st.integers(1, 3), st.just(0)),
    st.tuples(st.just("opens"), st.integers(0, 5), st.just(0)),
)


@examples(300)
@given(st.lists(ACTIONS, max_size=60))
def test_a_reload_never_exceeds_an_unchanged_rule(
    actions: list[tuple[str, Any, int]],
) -> None:
    """Also in the middle of a reload, and when producers close and open."""
    house = House(STAYS)
    accounts = [house.opens(f"t-{number}") for number in range(6)]
    began, passed = house.plane.now, 0
    steps: Iterator[None] = iter(())
    for action, which, many in actions:
        match action:
            case "sends":
                passed += sum(house.sends(accounts[which]) for _ in range(many))
            case "runs":
                house.runs(which)
            case "reloads":
                list(steps)
                steps = house.shaper.adopt(RuleSet.compile([STAYS, *ANOTHER[which : which + 1]]))
            case "steps":
                list(islice(steps, which))
            case "opens":
                house.shaper.release(accounts[which])
                accounts[which] = house.opens(f"t-{which}")
    assert passed <= 1 + RATE * (0.1 + house.plane.now - began) + 1e-6
    list(steps)
    house.adopts()
    house.runs(1)
    assert all(account.messages_ceiling == ENDLESS for account in accounts)
