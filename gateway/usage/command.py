"""`gateway usage FOLDER`: sums of the records in a folder or topic, as a table or as CSV."""

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

FIELDS = (
    *("op", "proto", "listener", "cluster", "tenant", "namespace", "topic", "partition"),
    *("subscription", "principal", "auth_method", "client_net", "client_lib", "client_id", "gw"),
)
"""By which sums can be made."""

SUMS = ("msgs", "entries", "bytes_wire", "throttle_ms", "refused", "open_ms")

Row = tuple[str, ...]


Read = Callable[[Ledger], Iterable[Usage]]
"""Returns all records of a folder or topic."""


def run(read: Read, by: Sequence[str], form: str) -> int:
    """Print the sums; return the exit status: 1 if records are missing."""
    ledger = Ledger()
    rows = [(*by, *SUMS), *sums(read(ledger), by)]
    if form == "csv":
        csv.writer(sys.stdout).writerows(rows)
    else:
        sys.stdout.writelines(f"{line}\n" for line in _table(rows, len(by)))
    return _report(ledger)


def sums(records: Iterable[Usage], by: Sequence[str]) -> list[Row]:
    """Return a row of texts for each value of the fields: these, and the sums. Sorted by bytes,
    most first."""
    found: dict[Row, list[int]] = {}
    for record in records:
        key = tuple(str(getattr(record, name) or "") for name in by)
        row = found.setdefault(key, [0] * len(SUMS))
        for at, name in enumerate(SUMS):
            row[at] += getattr(record, name)
    size = SUMS.index("bytes_wire")
    ordered = sorted(found.items(), key=lambda it: (-it[1][size], it[0]))
    return [(*key, *map(str, row)) for key, row in ordered]


def _table(rows: Sequence[Row], texts: int) -> list[str]:
    rows = [tuple(cell if cell.isprintable() else ascii(cell) for cell in row) for row in rows]
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
    told = [f"{ledger.records} records"]
    if ledger.repeated:
        told.append(f"{ledger.repeated} repeated")
    if ledger.unreadable:
        told.append(f"{ledger.unreadable} unreadable")
    told += [f"{number} missing of {gw} {boot}" for (gw, boot), number in missing.items()]
    sys.stderr.write("; ".join(told) + "\n")
    return 1 if missing or ledger.unreadable else 0


def of_folder(folder: Path) -> Read:
    """Return what reads a folder. Raises `ConfigurationError`."""
    if not (folder / "usage").is_dir():
        raise ConfigurationError(
            f"{folder}: has no usage records; name the folder that usage.folder names"
        )
    return partial(usage, folder)


def of_topic(url: str, token_file: Path | None, ca_file: Path | None) -> Read:
    """Return what reads a topic, by its URL; see `topic_of`. Raises `ConfigurationError`, and so
    does the reading."""
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
    """Yield the messages of a topic that a subscription has not acknowledged, in batches; see
    `topics.take`. Raises `ConfigurationError`."""
    brokers, topic = topic_of(url)
    from gateway.usage import topics

    with _reading(url):
        yield from topics.take(brokers, topic, subscription, topics.Access(token_file, ca_file))


def topic_of(url: str) -> tuple[str, str]:
    """Return the URL of brokers and the name of a topic, by the URL of brokers with the topic as
    path. Raises `ConfigurationError`."""
    scheme, _, rest = url.partition("://")
    brokers, _, path = rest.partition("/")
    plugin, topic = protocols.plugin_of(url), f"persistent://{path}"
    if plugin is None or not brokers or plugin.read_topic(topic) is None:
        form = protocols.example("host:port")
        raise ConfigurationError(f"{url}: is no topic; {form}/tenant/namespace/topic")
    return f"{scheme}://{brokers}", topic


@contextmanager
def _reading(url: str) -> Iterator[None]:
    """Explain why a topic cannot be read."""
    try:
        yield
    except (UnavailableError, OSError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ConfigurationError(f"{url}: cannot be read: {reason}") from None


def command(options: argparse.Namespace) -> int:
    """Run the command as its options say."""
    source, by = str(options.source), options.by.split(",")
    unknown = [it for it in by if it not in FIELDS]
    if unknown:
        raise ConfigurationError(
            f"--by {unknown[0]}: is no field; one or more of {', '.join(FIELDS)}"
        )
    if "://" in source:
        read = of_topic(source, options.token_file, options.ca_file)
    else:
        read = of_folder(Path(source))
    return run(read, by, options.format)
