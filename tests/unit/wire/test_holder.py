"""The holders of addresses, and their parts of divided memory."""

from __future__ import annotations

import pytest

from gateway.plane.share import Share
from gateway.wire.budget import Budget, Quota
from gateway.wire.holder import holder


@pytest.mark.parametrize(
    ("host", "found"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::1", "::/64"),
        ("", ""),
        ("not:an:address", "not:an:address"),
    ],
)
def test_the_holder_of_an_ipv6_address_is_its_network(host: str, found: str) -> None:
    assert holder(host) == found


def test_addresses_of_one_network_have_one_part_of_the_share() -> None:
    share = Share(1000)
    claims = [share.claim(f"2001:db8::{number:x}", 100, lambda: None) for number in range(20)]
    assert sum(claim.granted for claim in claims) == 5
    assert share.claim("2001:db8:0:1::1", 250, lambda: None).granted


def test_addresses_of_one_network_have_one_part_of_the_budget() -> None:
    budget = Budget(1000)
    Quota(budget, "2001:db8::1").take(500)
    assert not Quota(budget, "2001:db8::2").fits(1)
    assert Quota(budget, "2001:db8:0:1::1").fits(250)
