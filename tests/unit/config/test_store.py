"""URLs of a store, and their text form."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.config.store import PORT, StoreAddress, address


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("redis://a", StoreAddress("a", PORT)),
        ("valkey://a:1/", StoreAddress("a", 1)),
        ("rediss://a.example/7", StoreAddress("a.example", PORT, tls=True, database=7)),
        ("valkeys://10.0.0.1:6380", StoreAddress("10.0.0.1", 6380, tls=True)),
        ("redis://[::1]:6380", StoreAddress("::1", 6380)),
        ("unix:///run/valkey.sock", StoreAddress(path="/run/valkey.sock")),
    ],
)
def test_a_url_is_read(written: str, expected: StoreAddress) -> None:
    assert address(written) == expected


hosts = st.sampled_from(["a.example", "10.0.0.1", "::1"])
addresses = st.builds(
    StoreAddress,
    host=hosts,
    port=st.integers(1, 65535),
    tls=st.booleans(),
    database=st.integers(0, 99999),
    path=st.just(""),
) | st.sampled_from([StoreAddress(path="/a"), StoreAddress(path="/run/valkey/valkey.sock")])


@given(addresses)
def test_the_text_form_can_be_read_again(shown: StoreAddress) -> None:
    assert address(str(shown)) == shown
