"""Names of limits that processes share."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gateway.fleet.valkey import _tag
from gateway.policy.dimensions import Dimension
from gateway.policy.keys import LONGEST_SHARED, Key

WHAT = Dimension.PUBLISH_MESSAGES
values = st.lists(st.text(max_size=300), max_size=3).map(tuple)
keys = st.builds(Key, st.sampled_from(["one", "other"]), st.sampled_from(list(Dimension)), values)


def test_a_usual_key_is_its_own_text() -> None:
    key = Key("tenants", WHAT, ("persistent://tenant/namespace/topic", "alice"))
    assert "persistent://tenant/namespace/topic" in key.text


@given(keys)
def test_the_text_of_any_key_is_short(key: Key) -> None:
    assert len(key.text.encode()) <= LONGEST_SHARED


@given(keys, keys)
def test_texts_are_equal_only_if_the_keys_are(one: Key, other: Key) -> None:
    assert (one.text == other.text) is (one == other)
    assert (_tag(one.text) == _tag(other.text)) is (one == other)


def test_texts_of_long_keys_differ_by_the_last_character() -> None:
    long = "x" * 4_000_000
    texts = {Key("r", WHAT, it).text for it in [(long,), (long + "x",), (long, "x"), ("x", long)]}
    assert len(texts) == 4
    assert all(len(it) < LONGEST_SHARED for it in texts)


def test_a_digest_is_the_same_in_every_process() -> None:
    assert Key("r", WHAT, ("x" * 1000,)).text == (
        "r:publish.messages:df58afe086a5b1a014b295e31b3de616e947ae6ab950b127ae30cd9a513a937e"
    )
