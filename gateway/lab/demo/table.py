"""The live table: rich's renderables, made of plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from gateway.lab.demo.figures import Rates, total
from gateway.lab.demo.plan import KAFKA, MOVABLE, PULSAR, short_name, tenant_and_rest
from gateway.lab.demo.ports import HOST, Ports

WIDTH = 100
"""Columns. Wider tables wrap on a usual terminal."""

ROWS = 12
"""Most topics shown: users may open more than a terminal has lines."""

_MEGA = 1e6
_STYLES = ("cyan", "green", "magenta")
_FOREIGN_STYLE = "yellow"
"""Colour of topics that are not the demonstration's."""


@dataclass(frozen=True, slots=True)
class Board:
    """What the live table shows at one moment.

    `expected`: the demonstration's topics in their order; other topics follow. `owners`: the broker
    of each topic, if known. `passed`: messages to and from brokers since the start. `limits`:
    messages a second that a rule allows a topic's producers. `protocol`: what a client of the user
    speaks.
    """

    seconds: float
    rates: Mapping[str, Rates]
    expected: Sequence[str]
    connections: int
    passed: tuple[int, int]
    ports: Ports
    brokers: str
    movable: bool
    owners: Mapping[str, str] = field(default_factory=dict)
    limits: Mapping[str, int] = field(default_factory=dict)
    protocol: str = PULSAR


def render(board: Board) -> RenderableType:
    """Return the whole display: title, topics, totals, and hints."""
    gap = Text()
    return Group(_title(board), gap, _topics(board), gap, _totals(board), gap, *_hints(board))


def _title(board: Board) -> Table:
    way = f"clients -> gateway {HOST}:{board.ports.clients} -> {board.brokers}"
    title = Table.grid(padding=(0, 3))
    title.width = WIDTH
    title.add_column(style="bold", no_wrap=True)
    title.add_column(ratio=1, no_wrap=True)
    title.add_column(no_wrap=True)
    title.add_row("gateway demo", way, str(timedelta(seconds=round(board.seconds))))
    return title


def _topics(board: Board) -> Table:
    table = Table(
        box=box.SIMPLE_HEAD,
        width=WIDTH,
        show_edge=False,
        pad_edge=False,
        padding=(0, 1, 0, 0),
        show_footer=True,
    )
    sums = total(board.rates.values())
    table.add_column("tenant")
    table.add_column("topic", "total", ratio=1)
    if board.owners:
        table.add_column("broker", no_wrap=True)
    for heading, cell in zip(_HEADINGS, _cells(sums), strict=True):
        table.add_column(heading, cell, justify="right", no_wrap=True)
    names = _order_topics(board)
    for name in names[:ROWS]:
        tenant, topic = tenant_and_rest(name)
        owner = [board.owners.get(name, "")] if board.owners else []
        cells = _cells(board.rates[name])
        table.add_row(tenant, topic, *owner, *cells, style=_style(board, name))
    if len(names) > ROWS:
        table.add_row("", f"and {len(names) - ROWS} more")
    return table


_HEADINGS = ("in msg/s", "out msg/s", "in MB/s", "out MB/s", "producers", "consumers")


def _cells(rates: Rates) -> tuple[str, ...]:
    return (
        f"{rates.messages_in:,.0f}",
        f"{rates.messages_out:,.0f}",
        f"{rates.bytes_in / _MEGA:.2f}",
        f"{rates.bytes_out / _MEGA:.2f}",
        str(rates.producers),
        str(rates.consumers),
    )


def _order_topics(board: Board) -> list[str]:
    """Return the demonstration's topics, then other topics, the busiest first."""
    own = [name for name in board.expected if name in board.rates]
    others = sorted(
        board.rates.keys() - set(own),
        key=lambda name: (-board.rates[name].messages_in - board.rates[name].messages_out, name),
    )
    return own + others


def _style(board: Board, name: str) -> str:
    if name not in board.expected:
        return _FOREIGN_STYLE
    tenants = list(dict.fromkeys(tenant_and_rest(each)[0] for each in board.expected))
    return _STYLES[tenants.index(tenant_and_rest(name)[0]) % len(_STYLES)]


def _totals(board: Board) -> Text:
    came, went = board.passed
    return Text(
        f"{came:,} messages in and {went:,} out since the start, "
        f"on {board.connections} connections of clients",
        style="dim",
    )


def _hints(board: Board) -> list[Text]:
    clients, admin, console, control = board.ports
    first, *others = _client(board.protocol, f"{HOST}:{clients}")
    hints = [
        Text("Try next", style="bold"),
        _hint("your own client", first),
        *(_hint("", line) for line in others),
        _hint("the page", f"http://{HOST}:{console}/"),
        _hint("the metrics", f"curl http://{HOST}:{admin}/metrics"),
    ]
    if board.movable:
        where = f"http://{HOST}:{control}/move?topic={short_name(MOVABLE)}&assigned=true"
        hints += [
            Text("  move a topic to the other broker while it runs; no message is lost:"),
            Text(f"    curl -X POST '{where}'", style="bold", no_wrap=True),
        ]
    hints += [
        Text(f"  a rule limits    {short_name(topic)} to {limit} messages a second")
        for topic, limit in board.limits.items()
    ]
    return [
        *hints,
        Text(
            "  the end          Ctrl-C: all close in order, and clients and gateway compare counts"
        ),
    ]


def _client(protocol: str, address: str) -> list[str]:
    """Return lines of Python that send a message."""
    if protocol == KAFKA:
        return [
            "from confluent_kafka import Producer",
            f'client = Producer({{"bootstrap.servers": "{address}"}})',
            'client.produce("mine", b"hello"); client.flush()',
        ]
    return [
        f'import pulsar; client = pulsar.Client("pulsar://{address}")',
        'client.create_producer("mine").send(b"hello")',
    ]


def _hint(what: str, how: str) -> Text:
    return Text.assemble(f"  {what:<17}", (how, "bold"))
