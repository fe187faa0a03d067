"""The table of states is closed: each state is reached, left, and known to the page."""

from __future__ import annotations

from gateway.wire.pulsar.states import ENDING, GIVEN_UP, NEXT, PENDING, SETTLED, Event, State

FIRST = {State.OPENING, State.REOPENING}
"""The states in which an incarnation begins."""


def test_each_event_is_in_the_table() -> None:
    assert set(NEXT) == set(Event)


def test_each_state_is_reached_by_an_event() -> None:
    reached = {state for row in NEXT.values() for state in row.values()}
    assert reached | FIRST == set(State)


def test_each_state_is_pending_settled_or_ending() -> None:
    assert set(State) == PENDING | SETTLED | ENDING
    assert {State.QUEUED} == PENDING & SETTLED
    assert GIVEN_UP < ENDING
    assert not ENDING & (PENDING | SETTLED)


def test_only_a_refused_unsubscribe_brings_an_ending_incarnation_back() -> None:
    back = {
        event for event, row in NEXT.items() if any(it in row for it in ENDING)
        and any(row[it] not in ENDING for it in ENDING if it in row)
    }  # fmt: skip
    assert back == {Event.KEPT, Event.KEPT_UNOPENED}
