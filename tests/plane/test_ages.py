"""When what waits came first, though it came again since."""

from __future__ import annotations

from gateway.plane.ages import Ages


def test_nothing_has_no_age() -> None:
    ages = Ages()
    assert ages.first is None
    ages.put(10, 1.0)
    ages.passed(10)
    assert ages.first is None


def test_the_oldest_is_what_has_not_passed() -> None:
    ages = Ages()
    ages.put(10, 1.0)
    ages.put(10, 2.0)
    ages.passed(9)
    assert ages.first == 1.0
    ages.passed(1)
    assert ages.first == 2.0
    ages.passed(100)
    assert ages.first is None


def test_what_comes_again_has_the_age_that_it_had() -> None:
    before = Ages()
    before.put(10, 1.0)
    before.put(20, 5.0)
    before.passed(4)
    again = Ages(before.rest())
    again.put(10, 21.0)
    assert again.first == 1.0
    again.passed(6)
    assert again.first == 5.0
    again.put(20, 21.0)
    again.passed(20)
    assert again.first == 21.0, "four bytes more than had been thrown away"


def test_what_has_not_come_again_yet_keeps_its_age() -> None:
    before = Ages()
    before.put(10, 1.0)
    before.put(10, 5.0)
    again = Ages(before.rest())
    again.put(12, 21.0)
    once_more = Ages(again.rest())
    once_more.put(20, 41.0)
    assert once_more.first == 1.0
    once_more.passed(10)
    assert once_more.first == 5.0


def test_what_comes_at_about_the_same_time_is_one() -> None:
    ages = Ages()
    for number in range(1000):
        ages.put(1, 1.0 + number / 1000)
    assert len(ages.rest()) <= 11
    ages.passed(500)
    assert ages.first is not None
    assert 1.3 < ages.first < 1.6
