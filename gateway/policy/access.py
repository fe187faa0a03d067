"""Who may do what: the rules of rights, and what they denied.

A denial comes first, whatever else matches; then what a rule allows; then the default of the
listener. A shadow rule denies and allows nothing: it counts what would be different with it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

from gateway.telemetry.figures import Denied
from gateway.wire.account import Right
from gateway.wire.contract import Denial, Refusal

if TYPE_CHECKING:
    from gateway.policy.matching import Narrowed, RuleSet
    from gateway.policy.rules import Rule
    from gateway.wire.services import Undecided
    from gateway.wire.subject import Subject, TopicName

Default = Literal["open", "closed", "shadow", "opa"]
"""What a listener does with what no rule decides: allow it, deny it, allow it and count what would
be denied, or ask the policy agent."""

AGENT = "(opa)"
"""Stands for a rule in what is counted and logged. No rule has this id."""


class Agent(Protocol):
    """Decides what no rule does."""

    def judge(self, right: Right, subject: Subject) -> bool | Undecided:
        """Return whether a client has a right."""
        ...


class Refused(NamedTuple):
    """A right that was denied: to whom, and by which rule. `shadow`: it would have been."""

    subject: Subject
    right: Right
    rule: str
    shadow: bool


Tell = Callable[[Refused], object]


class Access:
    """The rights of all clients of a process. `defaults`: by listener. `tell`: called with each
    denial, real or not. `agent`: asked for listeners whose default is `opa`."""

    def __init__(
        self,
        rules: RuleSet,
        defaults: Mapping[str, Default],
        tell: Tell,
        agent: Agent | None = None,
    ) -> None:
        self._agent = agent
        self._rules = rules
        self._defaults = defaults
        self._tell = tell
        self.denied: Counter[Denied] = Counter()

    def adopt(self, rules: RuleSet) -> None:
        """Put other rules in force."""
        self._rules = rules

    def refuse(self, right: Right, subject: Subject) -> Denial | Undecided | None:
        """Return why a client may not do something; None: it may."""
        default = self._defaults.get(subject.listener or "", "open")
        verdict = self._rules.judge(subject, right, closed=default != "open")
        allowed = verdict.allowed or (default == "shadow" and verdict.by is None)
        if default == "opa" and verdict.by is None:
            return self._asked(right, subject)
        if not allowed:
            self._count(Refused(subject, right, _id(verdict.by), shadow=False))
            return Denial(Refusal.UNAUTHORIZED, _text(right, verdict.by))
        if not verdict.shadow_allowed:
            self._count(Refused(subject, right, _id(verdict.shadow_by), shadow=True))
        return None

    def _asked(self, right: Right, subject: Subject) -> Denial | Undecided | None:
        assert self._agent is not None  # as the configuration was checked
        found = self._agent.judge(right, subject)
        if not isinstance(found, bool):
            return found
        if found:
            return None
        self._count(Refused(subject, right, AGENT, shadow=False))
        return Denial(Refusal.UNAUTHORIZED, f"this client may not {right} here")

    def which(self, right: Right, client: Subject) -> Narrowed:
        """Return the test of topics on which rules give a client a right. Nothing is counted."""
        default = self._defaults.get(client.listener or "", "open")
        return self._rules.narrowed(client, right, closed=default in ("closed", "opa"))

    def refuse_all(self, right: Right, client: Subject, place: TopicName) -> Denial | None:
        """Return a denial if rules leave a client without a right on some topic of a namespace, and
        count it. `place`: any topic of the namespace. The agent is not asked: it judges one topic
        at a time."""
        if self.which(right, client).has_all(place):
            return None
        self._count(Refused(client, right, "", shadow=False))
        return Denial(Refusal.UNAUTHORIZED, f"this client may not {right} all topics here")

    def _count(self, denied: Refused) -> None:
        mode = "shadow" if denied.shadow else "enforce"
        listener = denied.subject.listener or ""
        self.denied[Denied(listener, denied.rule, denied.right, mode)] += 1
        self._tell(denied)


def _id(rule: Rule | None) -> str:
    return "" if rule is None else rule.id


def _text(right: Right, rule: Rule | None) -> str:
    why = "no rule allows it" if rule is None else f"rule {rule.id} denies it"
    return f"this client may not {right} here: {why}"
