"""The limits of accounts, before and after a change of the rules."""

from __future__ import annotations

import math

from gateway.policy.limiter import Limiter
from gateway.policy.matching import RuleSet
from gateway.policy.shaping import Shaping
from gateway.rules.files import build
from gateway.wire.account import Account, Action
from gateway.wire.counters import ENDLESS
from gateway.wire.subject import Subject
from tests.support.subjects import subject_of

NOW = 1000.0


def rules(*texts: dict[str, object]) -> RuleSet:
    found, mistakes = build({"version": 1, "rules": list(texts)})
    assert not mistakes
    return RuleSet.compile(found)


def limit(id: str = "r", rate: str = "1/s", **more: object) -> dict[str, object]:
    return {"id": id, "limit": {"publish": {"messages": rate}}, "burst": 1, **more}


def of(tenant: str) -> Subject:
    return subject_of(f"{tenant}/n/t")


class Setting:
    """Producers under rules."""

    def __init__(self, *texts: dict[str, object]) -> None:
        self.shaping = Shaping(rules(*texts))

    def opens(self, tenant: str = "a", action: Action = Action.PRODUCE) -> Account:
        account = Account(action, of(tenant))
        self.shaping.admit(account, NOW)
        return account

    def sends(self, account: Account, now: float = NOW) -> bool:
        """Send one message; return whether it passed."""
        if account.held and not self.shaping.limiter.wants(account, now):
            return False
        account.messages += 1
        return True

    def adopts(self, *texts: dict[str, object]) -> int:
        """Put rules in force; return the number of open accounts."""
        accounts = self.shaping.adopt(rules(*texts))
        for account in accounts:
            self.shaping.renew(account, NOW)
        return len(accounts)


def test_limits_by_made_up_names_are_bounded_in_bytes() -> None:
    shaping = Shaping(rules(limit(rate="1/h", per="topic")))
    shaping.limiter = Limiter(most_resting=100_000)
    for number in range(1_000):
        topic = f"persistent://a/b/{number}" + "x" * 1_000
        account = Account(Action.PRODUCE, subject_of(topic))
        shaping.admit(account, NOW)
        assert shaping.limiter.wants(account, NOW)
        account.messages += 1
        shaping.release(account, NOW)
    assert 30 <= len(shaping.limiter) <= 45


def test_a_rule_makes_one_limit_for_each_value_of_per() -> None:
    setting = Setting(limit(per="tenant"))
    one, same, other = setting.opens("a"), setting.opens("a"), setting.opens("b")
    assert setting.sends(one)
    assert [setting.sends(it) for it in (one, same, other)] == [False, False, True]
    (figures,) = setting.shaping.figures(NOW)
    assert (figures.rule, figures.what, figures.mode) == ("r", "publish.messages", "enforce")
    assert (figures.limits, figures.waiting, figures.waits) == (2, 2, 2)


def test_the_limit_with_the_least_left_is_told_with_whose_it_is() -> None:
    setting = Setting(limit(per="tenant"))
    setting.opens("a")
    assert setting.shaping.figures(NOW)[0].fill == 0.0
    assert setting.sends(setting.opens("b"))
    (figures,) = setting.shaping.figures(NOW)
    assert (figures.fill > 0.5, figures.fullest) == (True, "b")
    (later,) = setting.shaping.figures(NOW + 100)
    assert later.fill == 0.0


def test_an_account_that_no_rule_matches_is_unlimited() -> None:
    setting = Setting(limit(match={"tenant": "a"}))
    account = setting.opens("b")
    assert account.messages_ceiling == account.bytes_ceiling == ENDLESS


def test_a_rule_limits_producers_and_consumers_separately() -> None:
    both = {"publish": {"messages": "1/s"}, "dispatch": {"messages": "1/s"}}
    setting = Setting({"id": "r", "limit": both, "burst": "1s"})
    producer, _ = setting.opens(), setting.opens(action=Action.CONSUME)
    assert setting.sends(producer)


def test_new_rules_apply_to_open_accounts_one_by_one() -> None:
    setting = Setting(limit(match={"tenant": "b"}))
    accounts = [setting.opens() for _ in range(3)]
    first, *others = setting.shaping.adopt(rules(limit()))
    setting.shaping.renew(first, NOW)
    assert [it for it in accounts if it.messages_ceiling < ENDLESS] == [first]
    for account in others:
        setting.shaping.renew(account, NOW)
    assert all(it.messages_ceiling < ENDLESS for it in accounts)
    assert {it.generation for it in accounts} == {2}


def test_a_rule_that_stays_keeps_its_debt() -> None:
    setting = Setting(limit())
    account = setting.opens()
    assert setting.sends(account)
    account.messages += 9  # a batch
    setting.adopts(limit(), limit("other", "1000/s"))
    assert not setting.sends(account, NOW + 5)
    assert list(setting.shaping.limiter.hold_round(NOW + 8)) == []
    assert [it.account for it in setting.shaping.limiter.hold_round(NOW + 11)] == [account]


def test_a_removed_rule_frees_waiting_accounts() -> None:
    setting = Setting(limit())
    account = setting.opens()
    assert setting.sends(account)
    assert not setting.sends(account)
    assert setting.adopts(limit(match={"tenant": "b"})) == 1
    granted = {grant.account for grant in setting.shaping.limiter.hold_round(NOW)}
    assert granted == {account}


def test_an_account_that_closes_during_a_reload_is_not_renewed() -> None:
    setting = Setting(limit())
    account = setting.opens()
    assert setting.shaping.adopt(rules(limit())) == (account,)
    setting.shaping.release(account, NOW)
    setting.shaping.renew(account, NOW)
    assert len(setting.shaping.limiter) == 1
    assert next(setting.shaping.limiter.limits()).accounts == 0


def test_figures_of_forgotten_limits_stay() -> None:
    setting = Setting(limit(per="tenant"))
    account = setting.opens("a")
    assert setting.sends(account)
    assert not setting.sends(account)
    setting.shaping.release(account, NOW)
    setting.shaping.admit(Account(Action.PRODUCE, of("b")), NOW + 100)
    (figures,) = setting.shaping.figures(NOW + 100)
    assert (figures.limits, figures.waiting, figures.waits) == (1, 0, 1)


def test_figures_of_a_shadow_count_what_it_would_have_held() -> None:
    setting = Setting(limit(mode="shadow"))
    account = setting.opens()
    account.messages += 100
    (figures,) = setting.shaping.figures(NOW)
    assert figures.mode == "shadow"
    assert 90 <= figures.held <= 100


def test_on_overflow_reject_lets_five_seconds_of_the_rate_wait() -> None:
    strict = {"publish": {"messages": "20/s", "bytes": "1KB/s"}}
    rejecting = limit("wide", "100/s", on_overflow="reject")
    setting = Setting(rejecting, {"id": "narrow", "limit": strict, "on_overflow": "reject"})
    assert setting.opens().patience == (100, 5000)
    setting.adopts(rejecting)
    assert setting.opens().patience == (500, math.inf)


def test_without_on_overflow_reject_no_message_is_refused() -> None:
    shadow = limit("shadow", on_overflow="reject", mode="shadow")
    account = Setting(limit(), shadow).opens()
    assert account.patience is None
