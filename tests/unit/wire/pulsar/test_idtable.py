from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gateway.wire.pulsar.idtable import SMALL, IdTable

IDS = st.one_of(
    st.integers(0, 3),
    st.integers(SMALL - 2, SMALL + 2),
    st.integers(0, (1 << 64) - 1),
    st.sampled_from([(1 << 61) - 1, (1 << 64) - 1, 1 << 63]),
)


@given(st.lists(st.tuples(st.sampled_from(["put", "pop", "get"]), IDS, st.integers())))
def test_the_table_acts_as_a_dictionary(steps: list[tuple[str, int, int]]) -> None:
    table, plain = IdTable[int](), dict[int, int]()
    for does, id, value in steps:
        match does:
            case "put":
                table.put(id, value)
                plain[id] = value
            case "pop":
                assert table.pop(id) == plain.pop(id, None)
            case _:
                assert table.get(id) == plain.get(id)
        assert len(table) == len(plain)
        assert sorted(table) == sorted(plain.values())


def test_ids_that_python_hashes_to_the_same_number_are_hashed_apart() -> None:
    """Above `SMALL` the hash has a seed that nobody knows."""
    table, alike = IdTable[int](), [number * ((1 << 61) - 1) for number in range(1, 8)]
    assert len(set(map(hash, alike))) == 1
    for id in alike:
        table.put(id, id)
    assert not table.small
    assert table._large is not None
    assert len(set(map(hash, table._large))) == len(alike)


def test_a_number_longer_than_an_id_is_not_found() -> None:
    """A scanner reads up to 70 bits."""
    table = IdTable[int]()
    table.put((1 << 64) - 1, 1)
    assert table.get((1 << 70) - 1) is None
    assert table.get(-1) is None
