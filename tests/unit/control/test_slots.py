"""How many connections an address and a principal may have on one listener."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.control.slots import ADDRESS_FULL, PRINCIPAL_FULL, Slot, Slots
from gateway.wire.contract import Denial, Refusal

HOST, OTHER = "192.0.2.1", "192.0.2.2"


def seated(slots: Slots, host: str = HOST, principal: str | None = "alice") -> Slot:
    """Take a slot that must be there."""
    slot = slots.take(host, principal)
    assert isinstance(slot, Slot)
    return slot


def counted(slots: Slots) -> tuple[dict[str, int], dict[str, int]]:
    """Return what is remembered of addresses, and of principals."""
    return dict(slots._addresses), dict(slots._principals)


# -- bounds --


def test_there_is_no_bound_by_itself() -> None:
    slots = Slots()
    for _ in range(1000):
        seated(slots)


def test_an_address_has_exactly_its_bound() -> None:
    slots = Slots(of_address=3)
    taken = [seated(slots, principal=f"p{number}") for number in range(3)]
    assert slots.take(HOST, "p3") == ADDRESS_FULL
    seated(slots, OTHER)
    taken[1].leave()
    seated(slots)
    assert slots.take(HOST, None) == ADDRESS_FULL


def test_a_principal_has_exactly_its_bound_wherever_it_comes_from() -> None:
    slots = Slots(of_principal=3)
    taken = [seated(slots, f"192.0.2.{number}") for number in range(3)]
    assert slots.take("192.0.2.9", "alice") == PRINCIPAL_FULL
    seated(slots, "192.0.2.9", "bob")
    taken[0].leave()
    seated(slots, "192.0.2.9")
    assert slots.take(OTHER, "alice") == PRINCIPAL_FULL


def test_a_bound_of_one_leaves_one() -> None:
    slots = Slots(1, 1)
    seated(slots)
    assert slots.take(HOST, "bob") == ADDRESS_FULL
    assert slots.take(OTHER, "alice") == PRINCIPAL_FULL
    seated(slots, OTHER, "bob")


def test_clients_without_a_name_share_no_bound_of_principals() -> None:
    slots = Slots(of_principal=1)
    for _ in range(10):
        seated(slots, principal=None)
    assert counted(slots) == ({HOST: 10}, {})


@pytest.mark.parametrize("other", ["Alice", "alice ", "alice\0", "älice", "\ud800"])
def test_another_spelling_is_another_principal(other: str) -> None:
    slots = Slots(of_principal=1)
    seated(slots)
    seated(slots, principal=other)
    assert isinstance(slots.take(HOST, other), Denial)


def test_a_client_is_told_to_try_later_and_nothing_of_others() -> None:
    for denial in (ADDRESS_FULL, PRINCIPAL_FULL):
        assert denial.refusal is Refusal.TOO_MANY
        assert "alice" not in denial.text
        assert HOST not in denial.text


# -- addresses --


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("2001:db8::1", "2001:db8::ffff:ffff:ffff:ffff"),
        ("2001:db8::1", "2001:0DB8:0:0::2"),
        ("fe80::1%eth0", "fe80::2%eth1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
    ],
)
def test_addresses_of_one_holder_count_together(first: str, second: str) -> None:
    slots = Slots(of_address=2)
    seated(slots, first)
    slot = seated(slots, second)
    assert slots.take(first, None) == ADDRESS_FULL
    assert slots.take(second, None) == ADDRESS_FULL
    slot.leave()
    seated(slots, first)


@pytest.mark.parametrize(
    ("first", "second"),
    [("2001:db8::1", "2001:db8:0:1::1"), (HOST, OTHER), ("::ffff:192.0.2.1", "192.0.2.2")],
)
def test_addresses_of_two_holders_count_apart(first: str, second: str) -> None:
    slots = Slots(of_address=1)
    seated(slots, first)
    seated(slots, second)


# -- giving back --


def test_a_seat_is_given_back_once_however_often_it_is_left() -> None:
    slots = Slots(2, 2)
    first, second = seated(slots), seated(slots)
    for _ in range(5):
        first.leave()
    seated(slots)
    assert slots.take(HOST, "bob") == ADDRESS_FULL
    second.leave()
    assert counted(slots) == ({HOST: 1}, {"alice": 1})


def test_a_refused_client_takes_nothing_of_either_bound() -> None:
    slots = Slots(of_address=1, of_principal=2)
    slot = seated(slots)
    for _ in range(5):
        assert slots.take(HOST, "alice") == ADDRESS_FULL
    seated(slots, OTHER)
    for number in range(5):
        assert slots.take(f"198.51.100.{number}", "alice") == PRINCIPAL_FULL
    slot.leave()
    assert counted(slots) == ({OTHER: 1}, {"alice": 1})


def test_nothing_is_remembered_of_who_has_left_or_was_refused() -> None:
    slots = Slots(10, 10)
    for number in range(1000):
        seated(slots, f"2001:db8:{number:x}::1", f"p{number}").leave()
    full = [seated(slots, principal=None) for _ in range(10)]
    for number in range(1000):
        assert slots.take(HOST, f"p{number}") == ADDRESS_FULL
    for slot in full:
        slot.leave()
    assert counted(slots) == ({}, {})


STEPS = st.lists(
    st.tuples(
        st.sampled_from([HOST, OTHER, "2001:db8::1", "2001:db8::2", "::ffff:192.0.2.1"]),
        st.sampled_from([None, "", "alice", "bob"]),
        st.integers(0, 9),
    )
)


@given(STEPS)
def test_the_bounds_hold_in_every_order_of_coming_and_going(
    steps: list[tuple[str, str | None, int]],
) -> None:
    slots, here = Slots(3, 2), list[tuple[Slot, str | None]]()
    for host, principal, leaving in steps:
        taken = slots.take(host, principal)
        if isinstance(taken, Slot):
            here.append((taken, principal))
        if leaving < len(here):
            here.pop(leaving)[0].leave()
        addresses, principals = counted(slots)
        assert sum(addresses.values()) == len(here)
        assert sum(principals.values()) == sum(principal is not None for _, principal in here)
        assert max(addresses.values(), default=0) <= 3
        assert max(principals.values(), default=0) <= 2
    for slot, _ in here:
        slot.leave()
    assert counted(slots) == ({}, {})
