"""Memory for incomplete frames, divided among addresses."""

from __future__ import annotations

import pytest

from gateway.plane.share import TRIES, Claim, Share

SIZE = 1000


class Granted(list[str]):
    """The claims that were granted later, in order."""

    def claim(self, share: Share, address: str, size: int, name: str = "") -> Claim:
        return share.claim(address, size, lambda: self.append(name or address))


def test_one_address_gets_half_at_most() -> None:
    share, granted = Share(SIZE), Granted()
    claims = [granted.claim(share, "hostile", 100) for _ in range(20)]
    assert sum(claim.granted for claim in claims) == 5
    assert share.taken == SIZE // 2
    assert granted.claim(share, "honest", 250).granted


def test_room_is_left_for_an_address_that_comes_later() -> None:
    share, granted = Share(SIZE), Granted()
    for number in range(3):
        for _ in range(100):
            granted.claim(share, f"hostile {number}", 10)
    assert share.taken < SIZE * 9 // 10
    assert granted.claim(share, "honest", SIZE // 16).granted


def test_an_empty_share_grants_a_claim_of_any_size() -> None:
    share, granted = Share(SIZE), Granted()
    large = granted.claim(share, "a", 5 * SIZE)
    assert large.granted
    second = granted.claim(share, "b", 5 * SIZE)
    assert granted == []
    share.release(large)
    assert second.granted
    assert granted == ["b"]


def test_addresses_are_served_by_turn() -> None:
    """However many claims of the first address wait."""
    share, granted = Share(SIZE), Granted()
    taken = granted.claim(share, "x", 900)
    waiting = {f"hostile {n}": granted.claim(share, "hostile", 600, f"hostile {n}") for n in "012"}
    waiting["honest"] = granted.claim(share, "honest", 600, "honest")
    for _ in range(4):
        share.release(taken)
        taken = waiting[granted[-1]]
    assert granted == ["hostile 0", "honest", "hostile 1", "hostile 2"]


def test_a_small_claim_does_not_wait_for_a_large_one() -> None:
    share, granted = Share(SIZE), Granted()
    granted.claim(share, "x", 300)
    assert not granted.claim(share, "large", 900).granted
    assert granted.claim(share, "small", 100).granted


def test_one_release_grants_all_claims_that_fit() -> None:
    share, granted = Share(SIZE), Granted()
    taken = granted.claim(share, "x", 900)
    waiting = [granted.claim(share, "y", 150) for _ in range(4)]
    assert not any(claim.granted for claim in waiting)
    share.release(taken)
    assert [claim.granted for claim in waiting] == [True, True, True, False]


def test_a_claim_may_be_withdrawn() -> None:
    share, granted = Share(SIZE), Granted()
    taken = granted.claim(share, "x", 900)
    first, second = (granted.claim(share, "y", 800, name) for name in ("first", "second"))
    share.release(first)
    assert share.waiting == 1
    share.release(taken)
    assert granted == ["second"]
    share.release(second)
    assert (share.taken, share.waiting) == (0, 0)


def test_addresses_without_claims_are_forgotten() -> None:
    share, granted = Share(SIZE), Granted()
    for number in range(100):
        share.release(granted.claim(share, f"address {number}", SIZE))
    assert not share._of_address
    assert not share._waiting


def test_the_steps_of_a_release_are_bounded_for_many_claims(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    share, granted = Share(SIZE), Granted()
    taken = [granted.claim(share, f"taken {n}", 100) for n in range(5)]
    for number in range(3000):
        granted.claim(share, f"address {number}", 900)
    looks = []
    fits = Share._fits

    def counted(share: Share, claim: Claim) -> bool:
        looks.append(claim)
        return fits(share, claim)

    monkeypatch.setattr(Share, "_fits", counted)
    share.release(taken[0])
    assert len(looks) == TRIES
    assert granted == []
