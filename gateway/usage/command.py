"""`gateway usage FOLDER`: sums up the records in a folder or a topic, and prints the sums as a
table or as CSV."""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from gateway import protocols
from gateway.errors import ConfigurationError
from gateway.usage.reading import Ledger, usage
from gateway.usage.records import Usage
from gateway.usage.sending import UnavailableError
from gateway.usage.texts import harmless, visible

FIELDS = (
    *("op", "proto", "listener", "cluster", "tenant", "namespace", "topic", "partition"),
    *("subscription", "principal", "auth_method", "client_net", "client_lib", "client_id", "gw"),
)
"""Fields by which records can be summed up."""

SUMS = ("msgs", "entries", "bytes_wire", "throttle_ms", "refused", "open_ms")

Row = tuple[str, ...]


Read = Callable[[Ledger], Iterable[Usage]]
"""Returns all records of a folder or topic."""


def run(read: Read, by: Sequence[str], form: str) -> int:
    """Print the sums of all records that `read` returns. Return the exit status: 1 if records are
    missing or unreadable, otherwise 0. `by`: the fields by which records are summed up. `form`: csv
    or table."""
    ledger = Ledger()
    rows = [(*by, *SUMS), *sums(read(ledger), by)]
    if form == "csv":
        csv.writer(sys.stdout).writerows([tuple(map(harmless, row)) for row in rows])
    else:
        sys.stdout.writelines(f"{line}\n" for line in _table(rows, len(by)))
    return _report(ledger)


def sums(records: Iterable[Usage], by: Sequence[str]) -> list[Row]:
    """Return one row of texts for each combination of values of the fields `by`: these values, and
    then the sums `SUMS`. The rows are sorted by bytes, the largest first."""
    totals: dict[Row, list[int]] = {}
    for record in records:
        key = tuple(str(getattr(record, name) or "") for name in by)
        row = totals.setdefault(key, [0] * len(SUMS))
        for at, name in enumerate(SUMS):
            row[at] += getattr(record, name)
    size = SUMS.index("bytes_wire")
    ordered = sorted(totals.items(), key=lambda item: (-item[1][size], item[0]))
    return [(*key, *map(str, row)) for key, row in ordered]


def _table(rows: Sequence[Row], texts: int) -> list[str]:
    rows = [tuple(map(visible, row)) for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if at < texts else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _report(ledger: Ledger) -> int:
    missing = ledger.missing()
    parts = [f"{ledger.records} records"]
    if ledger.repeated:
        parts.append(f"{ledger.repeated} repeated")
    if ledger.unreadable:
        parts.append(f"{ledger.unreadable} unreadable")
    parts += [f"{number} missing of {gw} {boot}" for (gw, boot), number in missing.items()]
    sys.stderr.write("; ".join(parts) + "\n")
    return 1 if missing or ledger.unreadable else 0


def of_folder(folder: Path) -> Read:
    """Return a function that reads the records in a folder. Raises `ConfigurationError` if the
    folder has no records."""
    if not (folder / "usage").is_dir():
        raise ConfigurationError(
            f"{folder}: has no usage records; name the folder that usage.folder names"
        )
    return partial(usage, folder)


def of_topic(url: str, token_file: Path | None, ca_file: Path | None) -> Read:
    """Return a function that reads the records in a topic. `url`: see `topic_of`. Both this
    function and the one that it returns raise `ConfigurationError`."""
    brokers, topic = topic_of(url)
    from gateway.usage import topics

    access = topics.Access(token_file, ca_file)

    def read(ledger: Ledger) -> Iterator[Usage]:
        with _reading(url):
            yield from topics.usage(brokers, topic, ledger, access)

    return read


def taken_of_topic(
    url: str, subscription: str, token_file: Path | None, ca_file: Path | None
) -> Iterator[list[bytes]]:
    """Yield the payloads of messages that a subscription of a topic has not acknowledged, in
    batches; see `topics.take`. `url`: see `topic_of`. Raises `ConfigurationError`."""
    brokers, topic = topic_of(url)
    from gateway.usage import topics

    with _reading(url):
        yield from topics.take(brokers, topic, subscription, topics.Access(token_file, ca_file))


def topic_of(url: str) -> tuple[str, str]:
    """Return the two parts of a URL whose path is a topic: the URL of the brokers, and the name of
    the topic. Raises `ConfigurationError`."""
    scheme, _, rest = url.partition("://")
    brokers, _, path = rest.partition("/")
    plugin, topic = protocols.plugin_of(url), f"persistent://{path}"
    if plugin is None or not brokers or plugin.read_topic(topic) is None:
        form = protocols.example("host:port")
        raise ConfigurationError(f"{url}: is no topic; {form}/tenant/namespace/topic")
    return f"{scheme}://{brokers}", topic


@contextmanager
def _reading(url: str) -> Iterator[None]:
    """Turn the errors of reading a topic into `ConfigurationError`."""
    try:
        yield
    except (UnavailableError, OSError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ConfigurationError(f"{url}: cannot be read: {reason}") from None


def command(options: argparse.Namespace) -> int:
    """Run `gateway usage` with parsed options; return the exit status. Raises
    `ConfigurationError`."""
    source, by = str(options.source), options.by.split(",")
    unknown = [field for field in by if field not in FIELDS]
    if unknown:
        raise ConfigurationError(
            f"--by {unknown[0]}: is no field; one or more of {', '.join(FIELDS)}"
        )
    if "://" in source:
        read = of_topic(source, options.token_file, options.ca_file)
    else:
        read = of_folder(Path(source))
    return run(read, by, options.format)
