"""How many connections an address and a principal may have on one listener."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.control.seats import ADDRESS_FULL, PRINCIPAL_FULL, Seat, Seats
from gateway.wire.contract import Denial, Refusal

HOST, OTHER = "192.0.2.1", "192.0.2.2"


def seated(seats: Seats, host: str = HOST, principal: str | None = "alice") -> Seat:
    """Take a seat that must be there."""
    seat = seats.take(host, principal)
    assert isinstance(seat, Seat)
    return seat


def counted(seats: Seats) -> tuple[dict[str, int], dict[str, int]]:
    """Return what is remembered of addresses, and of principals."""
    return dict(seats._addresses), dict(seats._principals)


# -- bounds --


def test_there_is_no_bound_by_itself() -> None:
    seats = Seats()
    for _ in range(1000):
        seated(seats)


def test_an_address_has_exactly_its_bound() -> None:
    seats = Seats(of_address=3)
    taken = [seated(seats, principal=f"p{number}") for number in range(3)]
    assert seats.take(HOST, "p3") == ADDRESS_FULL
    seated(seats, OTHER)
    taken[1].leave()
    seated(seats)
    assert seats.take(HOST, None) == ADDRESS_FULL


def test_a_principal_has_exactly_its_bound_wherever_it_comes_from() -> None:
    seats = Seats(of_principal=3)
    taken = [seated(seats, f"192.0.2.{number}") for number in range(3)]
    assert seats.take("192.0.2.9", "alice") == PRINCIPAL_FULL
    seated(seats, "192.0.2.9", "bob")
    taken[0].leave()
    seated(seats, "192.0.2.9")
    assert seats.take(OTHER, "alice") == PRINCIPAL_FULL


def test_a_bound_of_one_leaves_one() -> None:
    seats = Seats(1, 1)
    seated(seats)
    assert seats.take(HOST, "bob") == ADDRESS_FULL
    assert seats.take(OTHER, "alice") == PRINCIPAL_FULL
    seated(seats, OTHER, "bob")


def test_clients_without_a_name_share_no_bound_of_principals() -> None:
    seats = Seats(of_principal=1)
    for _ in range(10):
        seated(seats, principal=None)
    assert counted(seats) == ({HOST: 10}, {})


@pytest.mark.parametrize("other", ["Alice", "alice ", "alice\0", "älice", "\ud800"])
def test_another_spelling_is_another_principal(other: str) -> None:
    seats = Seats(of_principal=1)
    seated(seats)
    seated(seats, principal=other)
    assert isinstance(seats.take(HOST, other), Denial)


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
    seats = Seats(of_address=2)
    seated(seats, first)
    seat = seated(seats, second)
    assert seats.take(first, None) == ADDRESS_FULL
    assert seats.take(second, None) == ADDRESS_FULL
    seat.leave()
    seated(seats, first)


@pytest.mark.parametrize(
    ("first", "second"),
    [("2001:db8::1", "2001:db8:0:1::1"), (HOST, OTHER), ("::ffff:192.0.2.1", "192.0.2.2")],
)
def test_addresses_of_two_holders_count_apart(first: str, second: str) -> None:
    seats = Seats(of_address=1)
    seated(seats, first)
    seated(seats, second)


# -- giving back --


def test_a_seat_is_given_back_once_however_often_it_is_left() -> None:
    seats = Seats(2, 2)
    first, second = seated(seats), seated(seats)
    for _ in range(5):
        first.leave()
    seated(seats)
    assert seats.take(HOST, "bob") == ADDRESS_FULL
    second.leave()
    assert counted(seats) == ({HOST: 1}, {"alice": 1})


def test_a_refused_client_takes_nothing_of_either_bound() -> None:
    seats = Seats(of_address=1, of_principal=2)
    seat = seated(seats)
    for _ in range(5):
        assert seats.take(HOST, "alice") == ADDRESS_FULL
    seated(seats, OTHER)
    for number in range(5):
        assert seats.take(f"198.51.100.{number}", "alice") == PRINCIPAL_FULL
    seat.leave()
    assert counted(seats) == ({OTHER: 1}, {"alice": 1})


def test_nothing_is_remembered_of_who_has_left_or_was_refused() -> None:
    seats = Seats(10, 10)
    for number in range(1000):
        seated(seats, f"2001:db8:{number:x}::1", f"p{number}").leave()
    full = [seated(seats, principal=None) for _ in range(10)]
    for number in range(1000):
        assert seats.take(HOST, f"p{number}") == ADDRESS_FULL
    for seat in full:
        seat.leave()
    assert counted(seats) == ({}, {})


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
    seats, here = Seats(3, 2), list[tuple[Seat, str | None]]()
    for host, principal, leaving in steps:
        taken = seats.take(host, principal)
        if isinstance(taken, Seat):
            here.append((taken, principal))
        if leaving < len(here):
            here.pop(leaving)[0].leave()
        addresses, principals = counted(seats)
        assert sum(addresses.values()) == len(here)
        assert sum(principals.values()) == sum(principal is not None for _, principal in here)
        assert max(addresses.values(), default=0) <= 3
        assert max(principals.values(), default=0) <= 2
    for seat, _ in here:
        seat.leave()
    assert counted(seats) == ({}, {})
