"""Authorization by rules: which rights a client has, and counts of what was denied.

If a matching rule denies a right, the client does not have it, whatever other rules say. Otherwise
a matching rule that allows the right gives it. If no rule matches, the listener's default decides.
A shadow rule neither denies nor allows: it only counts the decisions that would be different if the
rule were enforced.
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
"""What a listener does where no rule decides: allow, deny, allow and count what `closed` would have
denied, or ask the policy agent."""

AGENT = "(opa)"
"""Takes the place of a rule's id where the policy agent denied. No rule has this id."""


class Agent(Protocol):
    """Authorizes clients that no rule allows or denies, as `remote.opa.PolicyAgent` does."""

    def judge(self, right: Right, subject: Subject) -> bool | Undecided:
        """Return whether a client has a right; `Undecided` if the decision has to be requested
        first."""
        ...


class Refused(NamedTuple):
    """A denial: the subject, and the right that it lacks. `rule`: the id of the rule that denied
    the right; empty if no rule allowed it. `shadow`: the denial was only counted, and the client
    was allowed."""

    subject: Subject
    right: Right
    rule: str
    shadow: bool


Tell = Callable[[Refused], object]


class Access:
    """Authorizes all clients of a process, and counts denials.

    `defaults`: what holds if no rule matches, by listener. `tell`: called with each denial, shadow
    denials included. `agent`: authorizes clients of listeners whose default is `opa`.
    """

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
        """Authorize by these rules from now on, in place of the earlier ones."""
        self._rules = rules

    def refuse(self, right: Right, subject: Subject) -> Denial | Undecided | None:
        """Authorize a client: return None if it has the right; a denial, which is counted, if it
        does not; `Undecided` if the policy agent has to be asked first."""
        default = self._defaults.get(subject.listener or "", "open")
        verdict = self._rules.judge(subject, right, closed=default != "open")
        allowed = verdict.allowed or (default == "shadow" and verdict.by is None)
        if default == "opa" and verdict.by is None:
            return self._ask_agent(right, subject)
        if not allowed:
            self._count(Refused(subject, right, _id(verdict.by), shadow=False))
            return Denial(Refusal.UNAUTHORIZED, _text(right, verdict.by))
        if not verdict.shadow_allowed:
            self._count(Refused(subject, right, _id(verdict.shadow_by), shadow=True))
        return None

    def _ask_agent(self, right: Right, subject: Subject) -> Denial | Undecided | None:
        assert self._agent is not None  # as the configuration was checked
        decision = self._agent.judge(right, subject)
        if not isinstance(decision, bool):
            return decision
        if decision:
            return None
        self._count(Refused(subject, right, AGENT, shadow=False))
        return Denial(Refusal.UNAUTHORIZED, f"this client may not {right} here")

    def which(self, right: Right, client: Subject) -> Narrowed:
        """Return a function that tells, for any topic, whether rules give a client a right on this
        topic. Nothing is counted."""
        default = self._defaults.get(client.listener or "", "open")
        return self._rules.narrowed(client, right, closed=default in ("closed", "opa"))

    def which_named(self, right: Right, client: Subject) -> Narrowed:
        """Return a function as `which` does, for topics that the client has named itself: where the
        policy agent would decide, the function allows, because each use of the topic asks the
        agent."""
        default = self._defaults.get(client.listener or "", "open")
        return self._rules.narrowed(client, right, closed=default == "closed")

    def refuse_any(self, right: Right, client: Subject, place: TopicName) -> Denial | None:
        """Return None if a client may have a right on some topic of a namespace; otherwise a
        denial, which is counted. `place`: any topic of the namespace. The policy agent is not
        asked, because it authorizes one topic at a time; it counts as allowing."""
        closed = self._defaults.get(client.listener or "", "open") == "closed"
        topic = client.about(place, client.subscription)
        verdict = self._rules.judge_any(topic, right, closed=closed)
        if verdict.allowed:
            return None
        self._count(Refused(client, right, _id(verdict.by), shadow=False))
        return Denial(Refusal.UNAUTHORIZED, _text(right, verdict.by))

    def refuse_all(self, right: Right, client: Subject, place: TopicName) -> Denial | None:
        """Return None if rules give a client a right on every topic of a namespace; otherwise a
        denial, which is counted. `place`: any topic of the namespace. The policy agent is not
        asked, because it authorizes one topic at a time."""
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
