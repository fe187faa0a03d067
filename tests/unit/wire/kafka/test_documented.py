"""The page on Kafka agrees with the code: which request needs which right."""

from __future__ import annotations

import re
from pathlib import Path

from gateway.wire.account import Right
from gateway.wire.kafka.addresses import FETCH, PRODUCE
from gateway.wire.kafka.rights import NEEDS
from gateway.wire.kafka.schema import apis
from gateway.wire.kafka.versions import is_offered

PAGE = Path(__file__).resolve().parents[4] / "docs" / "protocols" / "kafka.md"

IN_PASSING = {PRODUCE: Right.PRODUCE, FETCH: Right.CONSUME}
"""APIs whose topics are judged elsewhere: while they pass, or with their accounts."""

NOTHING = "\N{EN DASH}"

Row = tuple[str, ...]


def documented() -> dict[str, Row]:
    """Return the rights that the page has for each API: on topics, groups, transactional ids, and
    the cluster."""
    table = re.search(r"^\| requests \| each topic.*?\n\n", PAGE.read_text(), re.M | re.S)
    assert table is not None
    found: dict[str, Row] = {}
    for line in table[0].strip().splitlines()[2:]:
        names, *rights = (cell.strip() for cell in line.strip("|").split("|"))
        for name in re.findall(r"`(\w+)`", names):
            assert name not in found
            found[name] = tuple(rights)
    return found


def needed(key: int) -> Row:
    needs = NEEDS[key]
    return (
        IN_PASSING.get(key) or needs.topics or NOTHING,
        Right.CONSUME if needs.groups else NOTHING,
        Right.PRODUCE if needs.transactions or key == PRODUCE else NOTHING,
        Right.ADMINISTER if needs.cluster else NOTHING,
    )


def test_each_api_that_clients_may_ask_has_a_right_or_is_known_to_need_none() -> None:
    assert NEEDS.keys() == {it.key for it in apis() if is_offered(it.key)}


def test_the_page_has_the_rights_of_each_api() -> None:
    assert documented() == {it.name: needed(it.key) for it in apis() if is_offered(it.key)}
