"""`python -m tests.docs.states`: writes what pages have of commands, states, bounds and rights: the
tables of the code, and what playing each event in each state gives.

A test holds the pages to the code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from gateway.front.side import JOBS_AT_ONCE, MAX_CONNECTIONS
from gateway.wire.account import Right
from gateway.wire.contract import Direction
from gateway.wire.kafka import fields as kafka
from gateway.wire.kafka.schema import apis
from gateway.wire.kafka.versions import is_offered
from gateway.wire.pulsar import fields as pulsar
from gateway.wire.pulsar.addresses import MOST_ADDRESSES, MOST_BROKERS
from gateway.wire.pulsar.chase import HOPS
from gateway.wire.pulsar.chase import PATIENCE as LONGEST_CHASE
from gateway.wire.pulsar.context import Bounds
from gateway.wire.pulsar.counts import MOST_METADATA
from gateway.wire.pulsar.field_counts import CHECKED_FROM
from gateway.wire.pulsar.fields import Act
from gateway.wire.pulsar.frames import COMMAND_BOUND, LISTS, Kind
from gateway.wire.pulsar.incarnations import FEW_STRAYS, MOST_STRAYS, UNANSWERED
from gateway.wire.pulsar.listings import LONGEST as LONGEST_LISTING
from gateway.wire.pulsar.rights import LIST_REQUESTS, MOST_NAMED
from gateway.wire.pulsar.rows import Row, Stops
from gateway.wire.pulsar.session import MOST_LISTED
from gateway.wire.pulsar.table import COMMANDS
from gateway.wire.pulsar.to_client import HEADS
from tests.docs import regions
from tests.playbooks import grids

PAGES = tuple(
    Path(__file__).resolve().parents[2] / "docs" / "protocols" / name
    for name in ("states.md", "pulsar.md", "kafka.md")
)

TO_BROKER, TO_CLIENT = Direction

Cells = Sequence[str]


def _table(head: Cells, rows: Iterable[Cells]) -> str:
    lines = [" ".join(f"| {' | '.join(row)} |".split()) for row in (head, *rows)]
    lines.insert(1, "|" + "---|" * len(head))
    return "".join(f"{line}\n" for line in lines)


def _grouped(rows: Iterable[tuple[str, Cells]]) -> Iterator[tuple[str, Cells]]:
    """Yield one row for all names that have the same cells, with these names."""
    names: dict[Cells, list[str]] = {}
    for name, cells in rows:
        names.setdefault(cells, []).append(f"`{name}`")
    return ((", ".join(of), cells) for cells, of in names.items())


# -- commands of Pulsar ------------------------------------------------------------------------

_WHEN = {
    Stops.ALWAYS: "",
    Stops.LIMITED: "with rules: ",
    Stops.ASKING: "with rules: ",
    Stops.COUNTED: "counted",
}
"""Words in front of what the session does."""

_TEXT = "rewrite its text"
_VIOLATION = "violation"
_CLOSED = "rewrite URLs; the incarnation has ended"
_LISTS = "remove hashes, and topics that the client may not look up"
_LIST = (
    "remove hashes; refuse lists of tenant `pulsar`; delay above the rate limit of lookups, and "
    "behind the list under way"
)
_OWN = "authorize; refuse a transaction that is not the client's"
_BY_MODE = "[by mode](pulsar.md#identity)"

WHAT: Mapping[Direction, Mapping[int, str]] = {
    TO_BROKER: {
        Kind.CONNECT: _VIOLATION,
        Kind.MESSAGE: _VIOLATION,
        Kind.PRODUCER: "open an account and an incarnation, or refuse",
        Kind.SUBSCRIBE: "as PRODUCER; refuse by ERROR and CLOSE_CONSUMER",
        Kind.SEND: "; hold above a limit, drop if its producer is not open",
        Kind.FLOW: "forward the permits that limits allow; drop before SUCCESS",
        Kind.UNSUBSCRIBE: "the broker's response may end the incarnation",
        Kind.CLOSE_PRODUCER: "hold behind held SENDs; the broker's response ends the incarnation",
        Kind.CLOSE_CONSUMER: "the broker's response may end the incarnation",
        Kind.LOOKUP: "keep a copy for redirects",
        Kind.PARTITIONED_METADATA: "authorize; delay above the rate limit of lookups",
        Kind.AUTH_RESPONSE: _BY_MODE,
        Kind.NEW_TXN: "the response says whose the transaction is",
        **dict.fromkeys((Kind.ADD_PARTITION_TO_TXN, Kind.ADD_SUBSCRIPTION_TO_TXN), _OWN),
        Kind.END_TXN: f"{_OWN}; drop once the gateway stops and has moved all incarnations",
        **dict.fromkeys(
            LIST_REQUESTS,
            _LIST,
        ),
    },
    TO_CLIENT: {
        Kind.CONNECTED: _VIOLATION,
        Kind.SEND: _VIOLATION,
        Kind.PRODUCER_SUCCESS: "the producer is open, or queued",
        Kind.SUCCESS: "a consumer is open, or an incarnation has ended",
        Kind.ERROR: f"{_TEXT}; an incarnation or lookup may have ended",
        Kind.MESSAGE: "",
        Kind.SEND_RECEIPT: "",
        Kind.SEND_ERROR: f"{_TEXT}; counts as a receipt",
        Kind.CLOSE_PRODUCER: _CLOSED,
        Kind.CLOSE_CONSUMER: _CLOSED,
        Kind.TOPIC_MIGRATED: "name the gateway of the new cluster; drop if none is configured",
        Kind.LOOKUP_RESPONSE: "Connect: rewrite URLs; Redirect: drop, start; Failed: rewrite text",
        Kind.AUTH_CHALLENGE: _BY_MODE,
        Kind.NEW_TXN_RESPONSE: _TEXT,
        Kind.END_TXN_RESPONSE: _TEXT,
        **dict.fromkeys(LISTS, _LISTS),
    },
}
"""What the session does with a command that has a function of its own."""


def _commands(direction: Direction) -> str:
    rows = COMMANDS.rows[direction].values()
    told = _grouped((row.kind.name, (_WHEN[row.stops] + _what(row),)) for row in rows)
    lines = [f"- {names}: {what}\n" for names, (what,) in told]
    head = "To the broker" if direction is TO_BROKER else "To the client"
    return "".join((f"{head}:\n\n", *lines))


def _what(row: Row) -> str:
    """Return what the session does. Raises `KeyError` if nothing says that."""
    is_decided = row.decide is not None or row.decide_long is not None
    if is_decided or row.stops in (Stops.COUNTED, Stops.ASKING):
        told = WHAT[row.direction][row.kind]
        has_text = pulsar.places(row.kind, TO_CLIENT, Act.TEXT) and "text" not in told
        return f"{told}; {_TEXT}" if has_text and row.direction is TO_CLIENT else told
    if row.direction is TO_BROKER:
        return WHAT[TO_BROKER].get(row.kind, "authorize")
    has_addresses = pulsar.places(row.kind, TO_CLIENT, Act.ADDRESS, Act.REMOVED)
    return "rewrite addresses and text" if has_addresses else _TEXT


def _grid(grid: grids.Grid) -> str:
    return _table(("event", "in most states", "exceptions"), grids.rows(grid))


# -- rights ------------------------------------------------------------------------------------


def _rights_of_pulsar() -> str:
    rights = pulsar.RIGHTS.items()
    told = _grouped((Kind(kind).name, (right.value, _on(kind))) for kind, right in rights)
    return _table(("command", "right", "on"), ((names, *cells) for names, cells in told))


def _on(kind: int) -> str:
    """Return what a right is on."""
    (topic,) = pulsar.places(kind, TO_BROKER, Act.TOPIC)
    each = any(field.is_repeated for field in (*topic.path, topic.field))
    with_subscription = bool(pulsar.places(kind, TO_BROKER, Act.SUBSCRIPTION))
    return f"{'each' if each else 'its'} topic{' and subscription' * with_subscription}"


def _fields_of_pulsar() -> str:
    rows = ((act.value, *(_fields(way, act) for way in Direction)) for act in Act)
    named = (row for row in rows if row[0] != Act.PASSED.value)
    return _table(("what happens", "in commands to brokers", "to clients"), named)


def _fields(direction: Direction, act: Act) -> str:
    fields = pulsar.FIELDS[direction].items()
    return ", ".join(f"`{name}`" for name, field in fields if field.act is act)


def _rights_of_kafka() -> str:
    told = _grouped((it.name, _needed(it.key)) for it in apis() if is_offered(it.key))
    head = ("each topic", "group", "transactional id", "cluster", "requests")
    return _table(head, ((*cells, names) for names, cells in told))


def _needed(key: int) -> tuple[str, ...]:
    """Return the rights on topics, groups, transactional ids, and the cluster."""
    acts = {rule.act for rule in kafka.rules_of(key, TO_BROKER).values()}
    return (
        kafka.RIGHTS.get(key, ""),
        Right.CONSUME if kafka.Act.GROUP in acts else "",
        Right.PRODUCE if kafka.Act.TRANSACTION in acts else "",
        Right.ADMINISTER if key in kafka.CLUSTER else "",
    )


# -- bounds ------------------------------------------------------------------------------------


def _bounds() -> str:
    bounds, too_many, waits = Bounds(), "TooManyRequests", "refused as delayed too long"
    delayed = f"{bounds.delayed:,}, {_size(bounds.delayed_bytes)}"
    rows = (
        ("producers and consumers", f"{bounds.handles:,}", too_many),
        ("names of producers and consumers", _size(bounds.handle_names), too_many),
        ("in-flight requests about one producer or consumer", f"{UNANSWERED}", too_many),
        ("SENDs of producers that are not open", _size(FEW_STRAYS), "violation"),
        ("these after the broker or the gateway closed one", _size(MOST_STRAYS), "violation"),
        ("in-flight lookups", f"{bounds.lookups:,}, {_size(bounds.lookup_bytes)}", too_many),
        ("delayed requests", delayed, waits),
        ("topics of one command that need rights", f"{MOST_NAMED}", too_many),
        ("redirects of a lookup", f"{HOPS}, within {LONGEST_CHASE:g} s", "ServiceNotReady"),
        ("redirected lookups at once", f"{JOBS_AT_ONCE}", "other lookups wait"),
        (
            "lists of topics under way, with rules",
            "1",
            f"others wait, for {LONGEST_LISTING:g} s each",
        ),
        ("side connections", f"{MAX_CONNECTIONS}", "unused connections close"),
        ("frames of a broker until CONNECTED", f"{bounds.rounds}", "AuthenticationError"),
        ("size of the command in MESSAGE, SEND_RECEIPT", _size(COMMAND_BOUND), "violation"),
        (f"fields of a topic list above {_size(CHECKED_FROM)}", f"{MOST_LISTED:,}", "violation"),
        ("metadata of a SEND whose count is compared", _size(MOST_METADATA), "violation"),
        ("metadata searched for the count of a MESSAGE", _size(HEADS), "counts as one message"),
        ("addresses in a command", f"{MOST_ADDRESSES:,}, of {MOST_BROKERS} brokers", "violation"),
    )
    return _table(("of one connection", "bound", "beyond it"), rows)


def _size(value: int) -> str:
    return f"{value >> 20} MiB" if value >= 1 << 20 else f"{value >> 10} KiB"


# -- pages -------------------------------------------------------------------------------------

TABLES: Mapping[str, Callable[[], str]] = {
    "to-broker": lambda: _commands(TO_BROKER),
    "to-client": lambda: _commands(TO_CLIENT),
    "producers": lambda: _grid(grids.PRODUCERS),
    "consumers": lambda: _grid(grids.CONSUMERS),
    "bounds": _bounds,
    "rights": _rights_of_pulsar,
    "fields-of-pulsar": _fields_of_pulsar,
    "rights-of-kafka": _rights_of_kafka,
}
"""By name, as pages have it where they begin."""


if __name__ == "__main__":
    for path in PAGES:
        regions.write(path, TABLES)
