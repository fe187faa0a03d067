"""The budget: memory that all connections of a process take together."""

from __future__ import annotations

from gateway.wire.budget import Budget, Quota


def test_an_address_gets_no_more_than_it_leaves_free() -> None:
    budget = Budget(1000)
    assert not budget.fits("one", 501)
    budget.add("one", 500)
    assert not budget.fits("one", 1)
    assert budget.fits("other", 250)
    assert not budget.fits("other", 251)


def test_connections_of_one_address_share_its_part() -> None:
    budget = Budget(1000)
    first, second = Quota(budget, "one"), Quota(budget, "one")
    first.take(400)
    assert second.fits(100)
    assert not second.fits(101)


def test_a_closed_connection_gives_its_bytes_back_once() -> None:
    budget = Budget(1000)
    stays, goes = Quota(budget, "one"), Quota(budget, "one")
    stays.take(10)
    goes.take(200)
    goes.take(100)
    goes.give_back(50)
    goes.close()
    goes.close()
    assert (goes.taken, budget.taken) == (0, 10)
    stays.close()
    assert (budget.taken, budget._of_address) == (0, {})
