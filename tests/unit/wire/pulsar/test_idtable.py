from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gateway.wire.account import Account, Action
from gateway.wire.pulsar.idtable import SMALL, IdTable

IDS = st.one_of(
    st.integers(0, 3),
    st.integers(SMALL - 2, SMALL + 2),
    st.integers(0, (1 << 64) - 1),
    st.sampled_from([(1 << 61) - 1, (1 << 64) - 1, 1 << 63]),
)

ACCOUNTS = [Account(Action.PRODUCE) for _ in range(4)]


@given(st.lists(st.tuples(st.sampled_from(["put", "pop", "get"]), IDS, st.sampled_from(ACCOUNTS))))
def test_the_table_acts_as_a_dictionary(steps: list[tuple[str, int, Account]]) -> None:
    table, plain = IdTable[Account](), dict[int, Account]()
    for does, id, value in steps:
        match does:
            case "put":
                table.put(id, value)
                plain[id] = value
            case "pop":
                assert table.pop(id) is plain.pop(id, None)
            case _:
                assert table.get(id) is plain.get(id)
        assert len(table) == len(plain)
        assert sorted(map(id_of, table)) == sorted(map(id_of, plain.values()))
        assert dict(table.items()) == plain


id_of = id


def test_many_ids_come_and_go() -> None:
    table, plain = IdTable[Account](), dict[int, Account]()
    for n in range(20_000):
        id = n * 2_654_435_761 % 5000
        table.put(id, ACCOUNTS[n % 4])
        plain[id] = ACCOUNTS[n % 4]
        gone = n * 40_503 % 5000
        assert table.pop(gone) is plain.pop(gone, None)
    assert dict(table.items()) == plain


def test_ids_that_python_hashes_to_the_same_number_are_hashed_apart() -> None:
    """Above `SMALL` the hash has a seed that nobody knows."""
    table, alike = IdTable[int](), [number * ((1 << 61) - 1) for number in range(1, 8)]
    assert len(set(map(hash, alike))) == 1
    for id in alike:
        table.put(id, id)
    assert len(set(map(hash, table._values or ()))) == len(alike)
