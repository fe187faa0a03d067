"""The live table, as text."""

from __future__ import annotations

import re
from dataclasses import replace
from io import StringIO

from rich.console import Console, RenderableType

from gateway.lab.demo.figures import Rates
from gateway.lab.demo.plan import FLOWS, KAFKA, MOVABLE, short_name
from gateway.lab.demo.ports import Ports
from gateway.lab.demo.table import ROWS, WIDTH, Board, render

ORDERS, IMPORT = "persistent://shop/orders/placed", "persistent://noisy/import/rows"
MINE = "persistent://public/default/mine"

BOARD = Board(
    seconds=65.2,
    rates={
        IMPORT: Rates(1234.4, 1000.0, 2.5e6, 2e6, 1, 1),
        ORDERS: Rates(150.0, 149.6, 70_000.0, 60_000.0, 3, 4),
    },
    expected=[ORDERS, IMPORT],
    connections=3,
    passed=(12345, 12340),
    ports=Ports(),
    brokers="two sandbox brokers",
    movable=True,
)


def _text(board: Board, width: int = WIDTH) -> str:
    return _printed(render(board), width)


def _printed(table: RenderableType, width: int) -> str:
    paper = Console(file=StringIO(), width=width, force_terminal=False)
    paper.print(table)
    assert isinstance(paper.file, StringIO)
    return paper.file.getvalue()


def _row(text: str, *starts: str) -> list[str]:
    (line,) = [line for line in text.splitlines() if line.split()[: len(starts)] == [*starts]]
    return line.split()[len(starts) :]


def test_a_topic_has_its_numbers_in_a_row() -> None:
    text = _text(BOARD)
    assert _row(text, "noisy", "import/rows") == ["1,234", "1,000", "2.50", "2.00", "1", "1"]
    assert _row(text, "shop", "orders/placed") == ["150", "150", "0.07", "0.06", "3", "4"]
    assert _row(text, "total") == ["1,384", "1,150", "2.57", "2.06", "4", "5"]


def test_planned_topics_come_first_in_order() -> None:
    text = _text(replace(BOARD, rates={MINE: Rates(9.0), **BOARD.rates}))
    assert re.findall(r"(?m)^ *\w+ +(\S+/\S+) ", text) == [
        "orders/placed",
        "import/rows",
        "default/mine",
    ]


def test_a_topic_without_numbers_has_no_row_yet() -> None:
    assert "orders/placed" not in _text(replace(BOARD, rates={}))


def test_known_owners_are_shown() -> None:
    text = _text(replace(BOARD, owners={ORDERS: "1 2 1"}))
    assert _row(text, "shop", "orders/placed")[:4] == ["1", "2", "1", "150"]
    assert _row(text, "noisy", "import/rows")[0] == "1,234"
    assert "broker " in text.splitlines()[2]
    assert "broker " not in _text(BOARD).splitlines()[2]


def test_the_number_of_rows_is_bounded() -> None:
    many = {f"persistent://public/default/t{number}": Rates(number) for number in range(1, 41)}
    text = _text(replace(BOARD, rates=many))
    assert len(re.findall(r"default/t\d+", text)) == ROWS
    assert f"and {40 - ROWS} more" in text
    assert "default/t40 " in text, "the busiest are shown"


def test_totals_since_the_start_are_shown() -> None:
    text = _text(BOARD)
    assert "12,345 messages in and 12,340 out since the start, on 3 connections" in text
    assert "0:01:05" in text


def test_hints_contain_the_ports_in_use() -> None:
    text = _text(replace(BOARD, ports=Ports(1111, 2222, 4444, 3333)))
    assert "http://127.0.0.1:4444/" in text
    assert 'pulsar.Client("pulsar://127.0.0.1:1111")' in text
    assert "curl http://127.0.0.1:2222/metrics" in text
    assert f"http://127.0.0.1:3333/move?topic={short_name(MOVABLE)}&assigned=true" in text


def test_real_brokers_have_no_control_to_move_topics() -> None:
    assert "move" not in _text(replace(BOARD, movable=False))


def test_kafka_has_its_own_client_and_the_limit_of_its_rule() -> None:
    rates = {"import": Rates(200.0, 199.6, 2e6, 1e6, 1, 1)}
    board = replace(
        BOARD,
        rates=rates,
        expected=["import"],
        limits={"import": 200},
        protocol=KAFKA,
        movable=False,
    )
    text = _text(board)
    assert _row(text, "kafka", "import") == ["200", "200", "2.00", "1.00", "1", "1"]
    assert 'Producer({"bootstrap.servers": "127.0.0.1:6650"})' in text
    assert "import to 200 messages a second" in text
    assert "pulsar" not in text
    assert "a rule limits" not in _text(BOARD)
    assert max(map(len, text.splitlines())) <= WIDTH


def test_the_whole_demo_fits_a_usual_terminal() -> None:
    busy = {flow.topic: Rates(123456.0, 123456.0, 1e8, 1e8, 99, 99) for flow in FLOWS}
    owners = dict.fromkeys(busy, "1 2 1")
    board = replace(BOARD, rates=busy, expected=list(busy), owners=owners)
    lines = _text(board).splitlines()
    assert len(lines) < 24
    assert max(map(len, lines)) <= WIDTH
    assert all(short_name(topic).partition("/")[2] in "".join(lines) for topic in busy)


def test_commands_stay_whole_on_a_narrow_terminal() -> None:
    assert f"/move?topic={short_name(MOVABLE)}&assigned=true'" in _text(BOARD, width=90)
