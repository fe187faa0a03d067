"""Writes all metrics as Prometheus text, in slices.

`prometheus_client` collects the metrics that are not per topic, tenant or principal, but its writer
is not used. For 10,000 topics (120,000 samples, AMD EPYC) that writer takes 0.9 to 1.1 s, 0.2 s of
it without a pause for the largest family, and meanwhile the data plane stands still. The writer in
this module takes 0.05 s, and other tasks may run several times in each millisecond.

All lines of one family must be written together, so a scrape has two passes. The first pass copies
all numbers into one list for each direction. The second pass writes one family after the other. The
escaped labels of a topic are kept from one scrape to the next.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from itertools import accumulate, islice
from operator import add
from typing import TYPE_CHECKING, NamedTuple

from gateway.telemetry import families
from gateway.telemetry.figures import NOTHING, OTHER, TENANTS, Totals
from gateway.telemetry.latency import BOUNDS
from gateway.telemetry.progress import Position, Progress
from gateway.wire.account import Waits

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from prometheus_client import Metric
    from prometheus_client.samples import Sample

    from gateway.telemetry.families import Family
    from gateway.telemetry.figures import (
        PrincipalFigures,
        PrincipalSource,
        TopicBook,
        TopicFigures,
    )
    from gateway.telemetry.latency import Histogram, ListenerLatencies
    from gateway.wire.subject import TopicName

# Topics copied, and lines written, between two chunks: 0.2 ms each; twice that for new topics, or
# if the lines are compressed.
_TOPICS_PER_SLICE = 100
_LINES_PER_SLICE = 600

_ACCOUNTS_PER_TOPIC = 25
"""Producers and consumers whose numbers are added up in the time of copying one topic."""

_COLUMNS = len(Totals._fields)
_MESSAGES, _BYTES, _FRAMES, _RECEIPTS, _OPEN, _DAMAGED, _SUBSCRIPTIONS = range(7)
_WANTED, _HELD, _REFUSED, _REDELIVERED = range(7, _COLUMNS)


class _Column(NamedTuple):
    """A metric family per topic, and where its numbers are in a row. `sparse`: most of them are 0,
    and are left out."""

    family: Family
    number: int
    sparse: bool = False


class _Level(NamedTuple):
    """The families of topics, tenants or principals. `damaged`: only where checksums are verified.
    `denied`: None where rights are not counted here."""

    counters: tuple[_Column, ...]
    damaged: _Column
    waits: Family
    wait_seconds: Family
    producers: _Column
    consumers: tuple[_Column, ...]
    denied: Family | None


def _level(of: families.Traffic, *consumers: _Column, denied: Family | None = None) -> _Level:
    """Return a level. `consumers`: further families of consumers."""
    return _Level(
        (
            _Column(of.messages, _MESSAGES),
            _Column(of.bytes, _BYTES),
            _Column(of.frames, _FRAMES),
            _Column(of.receipts, _RECEIPTS),
            _Column(of.redelivered, _REDELIVERED, sparse=True),
            _Column(of.refused, _REFUSED, sparse=True),
            _Column(of.held, _HELD, sparse=True),
        ),
        _Column(of.damaged, _DAMAGED),
        of.waits,
        of.wait_seconds,
        _Column(of.producers, _OPEN),
        (_Column(of.consumers, _OPEN), *consumers),
        denied,
    )


_TOPICS = _level(
    families.TOPIC,
    _Column(families.TOPIC_SUBSCRIPTIONS, _SUBSCRIPTIONS),
    _Column(families.TOPIC_WANTED, _WANTED),
    denied=families.TOPIC_DENIED,
)
_TENANTS = _level(families.TENANT, _Column(families.TENANT_WANTED, _WANTED))
_PRINCIPALS = _level(families.PRINCIPAL)


class _Table:
    """The numbers of one direction: a row for each set of labels. `tail` ends the labels."""

    def __init__(self, tail: str) -> None:
        self.tail = tail
        self.rows: dict[str, int] = {}
        # One list: a tuple for each row would be an object more for the collector of garbage.
        self.numbers: list[int] = []

    def add(self, labels: str, totals: Totals) -> None:
        end = len(self.numbers)
        at = self.rows.setdefault(labels, end)
        if at == end:
            self.numbers += totals
        else:
            # Part of a topic, or another spelling: repeated labels would invalidate the scrape.
            self.numbers[at : at + _COLUMNS] = map(add, self.numbers[at : at + _COLUMNS], totals)

    def lines(self, column: _Column, tail: str = "") -> Iterator[bytes]:
        numbers = self.numbers[column.number :: _COLUMNS]
        if column.sparse and not any(numbers):
            return
        head, foot = f"{column.family.exposed}{{", f"{tail}}} "
        rows = zip(self.rows, numbers, strict=True)
        for _ in range(0, len(numbers), _LINES_PER_SLICE):
            lines = [
                f"{head}{labels}{foot}{number}\n"
                for labels, number in islice(rows, _LINES_PER_SLICE)
                if number or not column.sparse
            ]
            yield "".join(lines).encode()


class _Sums:
    """As `_Table`, for a few sets of labels, to each of which many numbers are added."""

    def __init__(self, tail: str) -> None:
        self.tail = tail
        self._rows: dict[str, tuple[int, ...]] = {}

    def add(self, labels: str, totals: Totals) -> None:
        row = self._rows.get(labels)
        self._rows[labels] = totals if row is None else tuple(map(add, row, totals))

    def lines(self, column: _Column, tail: str = "") -> Iterator[bytes]:
        head, at = column.family.exposed, column.number
        rows = self._rows.items()  # of a thousand tenants at most in each cluster
        lines = [
            f"{head}{{{labels}{tail}}} {row[at]}\n"
            for labels, row in rows
            if row[at] or not column.sparse
        ]
        for begin in range(0, len(lines), _LINES_PER_SLICE):
            yield "".join(lines[begin : begin + _LINES_PER_SLICE]).encode()


class _WaitRows:
    """The waits of a scrape, of those few topics that waited, by labels."""

    def __init__(self) -> None:
        self._rows: dict[str, Waits] = {}

    def add(self, labels: str, waits: Waits) -> None:
        self._rows.setdefault(labels, Waits()).add(waits)

    def lines(self, family: Family, field: int) -> Iterator[bytes]:
        rows = iter(
            f'{family.exposed}{{{labels},rule="{escaped(rule[:LONGEST_LABEL])}"}} {waited[field]}\n'
            for labels, waits in self._rows.items()
            for rule, waited in waits.by_rule.items()
        )
        while lines := list(islice(rows, _LINES_PER_SLICE)):
            yield "".join(lines).encode()


class _DeniedRows:
    """The denied rights of a scrape, of those few topics that have some, by labels."""

    def __init__(self) -> None:
        self._rows: dict[str, Counter[str]] = {}

    def add(self, labels: str, denied: Mapping[str, int] | None) -> None:
        if denied is not None:
            self._rows.setdefault(labels, Counter()).update(denied)

    def lines(self, family: Family) -> Iterator[bytes]:
        rows = iter(
            f'{family.exposed}{{{labels},right="{right}"}} {number}\n'
            for labels, denied in self._rows.items()
            for right, number in denied.items()
        )
        while lines := list(islice(rows, _LINES_PER_SLICE)):
            yield "".join(lines).encode()


class _Scrape:
    """The numbers that one scrape copies. `table`: the class for those of one direction."""

    def __init__(self, table: type[_Table | _Sums]) -> None:
        self.produced = table(',direction="to_broker"')
        self.consumed = table(',direction="to_client"')
        self.waits = _WaitRows()
        self.denied = _DeniedRows()

    def add(self, labels: str, figures: TopicFigures | PrincipalFigures) -> int:
        """Add all or some figures of a topic or principal. Return the work: 1 for a small topic,
        else more."""
        made, taken = figures.produced, figures.consumed
        if made is not NOTHING and any(made):
            self.produced.add(labels, made)
        if taken is not NOTHING and any(taken):
            self.consumed.add(labels, taken)
        if figures.produced_waits is not None:
            self.waits.add(labels + self.produced.tail, figures.produced_waits)
        if figures.consumed_waits is not None:
            self.waits.add(labels + self.consumed.tail, figures.consumed_waits)
        return 1 + (made.open + taken.open) // _ACCOUNTS_PER_TOPIC


class _Exposition(ABC):
    """Writes the metrics of a level, of all `clusters`.

    `verified`: checksums are verified somewhere, so the family of failures is written.
    """

    def __init__(
        self,
        level: _Level,
        table: type[_Table | _Sums],
        clusters: Iterable[str],
        *,
        verified: bool = False,
    ) -> None:
        self._level = level
        self._table = table
        self._clusters = tuple(clusters)
        self._counters = (*level.counters, level.damaged) if verified else level.counters

    def chunks(self) -> Iterator[bytes]:
        """Yield the exposition as chunks of Prometheus text, some of which are empty. Other tasks
        may run between two chunks.

        A chunk takes less than half a millisecond. Several expositions may be in progress at once.
        """
        scrape = _Scrape(self._table)
        for cluster in self._clusters:
            yield from self._copy(cluster, scrape)
        for column in self._counters:
            yield _heading(column.family)
            for table in (scrape.produced, scrape.consumed):
                yield from table.lines(column, table.tail)
        for at, family in enumerate((self._level.waits, self._level.wait_seconds)):
            yield _heading(family)
            yield from scrape.waits.lines(family, at)
        if self._level.denied is not None:
            yield _heading(self._level.denied)
            yield from scrape.denied.lines(self._level.denied)
        consumers = [(column, scrape.consumed) for column in self._level.consumers]
        for column, table in [(self._level.producers, scrape.produced), *consumers]:
            yield _heading(column.family)
            yield from table.lines(column)

    @abstractmethod
    def _copy(self, cluster: str, scrape: _Scrape) -> Iterator[bytes]:
        """Copy a book's numbers, in slices."""


class TopicExposition(_Exposition):
    """Writes the metrics of all topics. `books`: the topics' figures, by cluster. `verified`:
    metrics of wrong checksums are written, because some checksums are verified. `folded`: the
    partitions of a topic are summed up."""

    def __init__(
        self, books: Mapping[str, TopicBook], *, verified: bool = False, folded: bool = False
    ) -> None:
        super().__init__(_TOPICS, _Table, books, verified=verified)
        self._books = books
        self._labels: dict[str, dict[TopicName, str]] = {}
        self._folded = folded

    def _copy(self, cluster: str, scrape: _Scrape) -> Iterator[bytes]:
        """Copy a book's numbers, and forget the labels of topics that it no longer has."""
        known = self._labels.get(cluster, {})
        used: dict[TopicName, str] = {}
        work = 0
        for figures in self._books[cluster].topics():
            topic = figures.topic
            labels = known.get(topic) or used.get(topic) or self._labels_of(cluster, topic)
            used[topic] = labels
            work += scrape.add(labels, figures)
            scrape.denied.add(labels, figures.denied)
            if work >= _TOPICS_PER_SLICE:
                work = 0
                yield b""
        self._labels[cluster] = used

    def _labels_of(self, cluster: str, topic: TopicName) -> str:
        return labels_of(cluster, topic._replace(partition=None) if self._folded else topic)


class TenantExposition(_Exposition):
    """Writes the metrics of tenants: up to `TENANTS` tenants of each cluster by name, and all other
    tenants of the cluster together.

    A tenant has a row of its own from its first message on, and keeps this row, so its counters
    never decrease. Tenants without messages have no row, because otherwise clients could use up all
    rows by naming tenants that do not exist.
    """

    def __init__(self, books: Mapping[str, TopicBook], *, verified: bool = False) -> None:
        super().__init__(_TENANTS, _Sums, books, verified=verified)
        self._books = books
        self._labels: dict[str, dict[str, str]] = {cluster: {} for cluster in books}

    def _copy(self, cluster: str, scrape: _Scrape) -> Iterator[bytes]:
        known = self._labels[cluster]
        other = tenant_labels(cluster, OTHER)
        work = 0
        for figures in self._books[cluster].topics():
            tenant = figures.topic.tenant
            labels = known.get(tenant)
            if labels is None:
                labels = other
                has_traffic = figures.produced.messages or figures.consumed.messages
                if has_traffic and len(known) < TENANTS:
                    labels = known[tenant] = tenant_labels(cluster, tenant)
            work += scrape.add(labels, figures)
            if work >= _TOPICS_PER_SLICE:
                work = 0
                yield b""


class PrincipalExposition(_Exposition):
    """Writes the metrics of all principals. `sources`: the principals' figures, by cluster."""

    def __init__(self, sources: Mapping[str, PrincipalSource], *, verified: bool = False) -> None:
        super().__init__(_PRINCIPALS, _Sums, sources, verified=verified)
        self._sources = sources

    def _copy(self, cluster: str, scrape: _Scrape) -> Iterator[bytes]:
        work = 0
        for figures in self._sources[cluster].principals():
            labels = _labels(cluster=cluster, principal=figures.principal)
            work += scrape.add(labels, figures)
            if work >= _TOPICS_PER_SLICE:
                work = 0
                yield b""


_LATENCIES = (
    ("send", families.SEND_SECONDS),
    ("own", families.SEND_OWN_SECONDS),
    ("lookup", families.LOOKUP_SECONDS),
    ("first_message", families.FIRST_MESSAGE_SECONDS),
)
"""The attribute of `TenantLatencies`, and its family."""

_LINES_PER_HISTOGRAM = len(BOUNDS) + 3


class LatencyExposition:
    """Writes the latency histograms of all tenants, by listener. Empty histograms are left out.

    The histograms of 1,000 tenants have 80,000 lines. A metrics library writes these in 0.7 s, this
    class in 0.03 s.
    """

    def __init__(self, listeners: Mapping[str, ListenerLatencies]) -> None:
        self._listeners = listeners
        self._labels: dict[tuple[str, str], str] = {}  # by listener and tenant, which stay

    def chunks(self) -> Iterator[bytes]:
        """Yield the metrics as chunks of Prometheus text; other tasks may run between two
        chunks."""
        for attribute, family in _LATENCIES:
            yield _heading(family)
            for listener, latencies in self._listeners.items():
                yield from self._lines(family, listener, attribute, latencies)

    def _lines(
        self, family: Family, listener: str, attribute: str, source: ListenerLatencies
    ) -> Iterator[bytes]:
        rows = iter(tuple(source.tenants.items()))
        while some := list(islice(rows, _LINES_PER_SLICE // _LINES_PER_HISTOGRAM)):
            yield "".join(
                _histogram(family, self._labels_of(listener, tenant), histogram)
                for tenant, latencies in some
                if any((histogram := getattr(latencies, attribute)).counts)
            ).encode()

    def _labels_of(self, listener: str, tenant: str) -> str:
        known = self._labels.get((listener, tenant))
        if known is None:
            known = self._labels[listener, tenant] = _labels(listener=listener, tenant=tenant)
        return known


class ProgressExposition:
    """Writes the committed offsets of groups and the end offsets of partitions, by cluster."""

    def __init__(self, clusters: Mapping[str, Progress]) -> None:
        self._clusters = clusters

    def chunks(self) -> Iterator[bytes]:
        """Yield the metrics as chunks of Prometheus text; other tasks may run between two chunks.
        If there are no offsets, yield nothing."""
        for family, of in (
            (families.PARTITION_END, Progress.ends),
            (families.GROUP_OFFSET, Progress.committed),
        ):
            heading = _heading(family)
            for cluster, progress in self._clusters.items():
                rows = of(progress)
                while some := list(islice(rows, _POSITIONS_PER_SLICE)):
                    yield heading + b"".join(
                        _position(family, cluster, position) for position in some
                    )
                    heading = b""


_POSITIONS_PER_SLICE = 100
"""Lines of positions, whose labels are made anew for each scrape, in 0.3 ms."""


def _position(family: Family, cluster: str, position: Position) -> bytes:
    of_group = {"group": position.group} if family is families.GROUP_OFFSET else {}
    labels = _labels(
        cluster=cluster, **of_group, topic=position.topic, partition=str(position.partition)
    )
    return f"{family.exposed}{{{labels}}} {position.offset}\n".encode()


_BUCKETS = [f',le="{bound}"}}' for bound in (*BOUNDS, "+Inf")]


def bucket_of(family: Family, listener: str, tenant: str, bucket: int) -> str:
    """Return the line of a histogram's bucket up to its value: the name and the labels. `bucket`:
    the index of the bucket in `BOUNDS`."""
    labels = _labels(listener=listener, tenant=tenant)
    return f"{family.exposed}_bucket{{{labels}{_BUCKETS[bucket]}"


def _histogram(family: Family, labels: str, histogram: Histogram) -> str:
    name = family.exposed
    numbers = list(accumulate(histogram.counts))
    bucket = f"{name}_bucket{{{labels}"
    lines = [f"{bucket}{bound} {number}\n" for bound, number in zip(_BUCKETS, numbers, strict=True)]
    lines += f"{name}_count{{{labels}}} {numbers[-1]}\n", f"{name}_sum{{{labels}}} "
    return f"{''.join(lines)}{histogram.seconds}\n"


_SUFFIXES = {"counter": "_total", "info": "_info"}
"""The ending of a family's name in the text format, by kind."""


def written(metrics: Iterable[Metric]) -> Iterator[bytes]:
    """Yield the Prometheus text of metrics that `prometheus_client` has collected, in slices."""
    for metric in metrics:
        name = metric.name + _SUFFIXES.get(metric.type, "")
        kind = "gauge" if metric.type == "info" else metric.type
        heading = f"# HELP {name} {metric.documentation}\n# TYPE {name} {kind}\n"
        samples = iter(metric.samples)
        while (lines := "".join(map(_sample, islice(samples, _LINES_PER_SLICE)))) or heading:
            yield (heading + lines).encode()
            heading = ""


def _sample(sample: Sample) -> str:
    values = ",".join(f'{name}="{escaped(value)}"' for name, value in sample.labels.items())
    labels = f"{{{values}}}" if values else ""
    return f"{sample.name}{labels} {sample.value}\n"


LONGEST_LABEL = 512
"""Most characters of a label. Brokers use topic names in paths and file names, where 255 are usual.
The bound limits what a client that invents names can add to every scrape."""


def labels_of(cluster: str, topic: TopicName) -> str:
    """Return the labels that all metrics of a topic have, escaped and without braces."""
    namespace = topic.namespace.removeprefix(f"{topic.tenant}/")
    return _labels(cluster=cluster, tenant=topic.tenant, namespace=namespace, topic=topic.name)


def tenant_labels(cluster: str, tenant: str) -> str:
    """Return the labels that all metrics of a tenant have, escaped and without braces."""
    return _labels(cluster=cluster, tenant=tenant)


def _labels(**values: str) -> str:
    return ",".join(f'{key}="{escaped(value[:LONGEST_LABEL])}"' for key, value in values.items())


def escaped(value: str) -> str:
    """Return the value of a label, escaped for the text format."""
    value = value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
    # A name may have half of a surrogate pair, which UTF-8 cannot encode.
    return value.encode(errors="replace").decode()


def _heading(family: Family) -> bytes:
    name = family.exposed
    return f"# HELP {name} {family.text}\n# TYPE {name} {family.kind}\n".encode()
