"""`gateway usage FOLDER`: sums of the records in a folder, as a table or as CSV."""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from gateway.errors import ConfigurationError
from gateway.usage.reading import Ledger, usage
from gateway.usage.records import Usage

FIELDS = (
    *("op", "proto", "listener", "cluster", "tenant", "namespace", "topic", "partition"),
    *("subscription", "principal", "auth_method", "client_net", "client_lib", "gw"),
)
"""By which sums can be made."""

SUMS = ("msgs", "entries", "bytes_wire", "throttle_ms", "refused", "open_ms")

Row = tuple[str, ...]


def run(folder: Path, by: Sequence[str], form: str) -> int:
    """Print the sums; return the exit status: 1 if records are missing. Raises
    `ConfigurationError`."""
    unknown = [it for it in by if it not in FIELDS]
    if unknown:
        raise ConfigurationError(
            f"--by {unknown[0]}: is no field; one or more of {', '.join(FIELDS)}"
        )
    if not (folder / "usage").is_dir():
        raise ConfigurationError(
            f"{folder}: has no usage records; name the folder that usage.folder names"
        )
    ledger = Ledger()
    rows = [(*by, *SUMS), *sums(usage(folder, ledger), by)]
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


def command(options: argparse.Namespace) -> int:
    """Run the command as its options say."""
    return run(options.folder, options.by.split(","), options.format)
