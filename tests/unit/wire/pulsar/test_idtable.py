from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.compiled import COMPILED
from gateway.wire.account import Account, Action
from gateway.wire.pulsar.idtable import SMALL, IdTable
from gateway.wire.pulsar.scan import Accounts

IDS = st.one_of(
    st.integers(0, 3),
    st.integers(SMALL - 2, SMALL + 2),
    st.integers(0, (1 << 64) - 1),
    st.sampled_from([(1 << 61) - 1, (1 << 64) - 1, 1 << 63]),
)

ACCOUNTS = [Account(Action.PRODUCE) for _ in range(4)]

KINDS: list[type[Accounts]] = [IdTable]
if COMPILED:
    from gateway.compiled.counters import AccountTable

    KINDS.append(AccountTable)

every_kind = pytest.mark.parametrize("kind", KINDS)


@every_kind
@given(st.lists(st.tuples(st.sampled_from(["put", "pop", "get"]), IDS, st.sampled_from(ACCOUNTS))))
def test_the_table_acts_as_a_dictionary(
    kind: type[Accounts], steps: list[tuple[str, int, Account]]
) -> None:
    table, plain = kind(), dict[int, Account]()
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


@every_kind
def test_many_ids_come_and_go(kind: type[Accounts]) -> None:
    table, plain = kind(), dict[int, Account]()
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
    assert not table.small
    assert table._large is not None
    assert len(set(map(hash, table._large))) == len(alike)


@every_kind
def test_a_number_longer_than_an_id_is_not_found(kind: type[Accounts]) -> None:
    """A scanner reads up to 70 bits."""
    table = kind()
    table.put((1 << 64) - 1, ACCOUNTS[0])
    assert table.get((1 << 70) - 1) is None
    assert table.get(-1) is None


@every_kind
def test_an_account_lives_as_long_as_its_table(kind: type[Accounts]) -> None:
    table = kind()
    for id in range(100):
        table.put(id, Account(Action.PRODUCE))
        table.put(id, Account(Action.PRODUCE))
    for id in range(0, 100, 2):
        table.pop(id)
    assert [account.held for account in table] == [False] * 50
