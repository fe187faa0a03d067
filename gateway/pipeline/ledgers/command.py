"""`gateway pipeline snapshot`: writes down what a cluster stores at this moment, topic by topic."""

from __future__ import annotations

import argparse
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gateway.errors import ConfigurationError, UpstreamError
from gateway.pipeline.ledgers import files
from gateway.pipeline.ledgers.snapshot import Taken, Walked, record_of, refusals

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gateway.pipeline.ledgers.snapshot import Seen, Snapshot, Source

COMPLETE, INCOMPLETE = 0, 1
"""Exit statuses. Incomplete: something was refused, or there is no file at all."""

EACH = 2.0
"""Seconds between two lines of progress."""


@dataclass(slots=True)
class Totals:
    """Sums of a snapshot."""

    topics: int = 0
    bytes: int = 0
    refused: int = 0
    walked: Walked = field(default_factory=Walked)

    def count(self, record: Snapshot) -> None:
        """Add a topic."""
        self.topics += 1
        self.bytes += record.stored_bytes
        self.refused += refusals(record)

    def text(self) -> str:
        """Return the sums for a person."""
        found = f"{self.topics} topics, {self.bytes} bytes, {self.refused} refused"
        vanished = self.walked.vanished
        return f"{found}, {vanished} vanished meanwhile" if vanished else found


def run(options: argparse.Namespace) -> int:
    """Take a snapshot as the options say; return the exit status. Raises `ConfigurationError`."""
    if not files.CLUSTER.fullmatch(options.cluster):
        raise ConfigurationError(
            f"--cluster {options.cluster}: is no name; at most 71 letters, digits, '.', '_', '-'"
        )
    if options.zookeeper and (options.token_file or options.ca_file):
        raise ConfigurationError("--token-file and --ca-file: are for --admin, not --zookeeper")
    kind: Source = "zookeeper" if options.zookeeper else "admin"
    taken = Taken(time.time_ns() // 1_000_000, options.cluster, kind)
    totals = Totals()
    try:
        with (
            _source(options, totals.walked) as seen,
            files.written(options.folder, taken) as append,
        ):
            for record in _counted(seen, taken, totals):
                append(record)
    except UpstreamError as error:
        _say(f"no snapshot: {error}")
        return INCOMPLETE
    except OSError as error:
        raise ConfigurationError(f"{options.folder}: cannot be written: {error.strerror}") from None
    _say(f"{totals.text()}; {files.path_of(options.folder, taken)}")
    return INCOMPLETE if totals.refused else COMPLETE


@contextmanager
def _source(options: argparse.Namespace, walked: Walked) -> Iterator[Iterator[Seen]]:
    """Yield the topics of the source that the options name. Each is loaded only when it is used:
    it has a library of its own."""
    if options.zookeeper:
        from gateway.pipeline.ledgers import zookeeper

        with zookeeper.connected(options.zookeeper) as client:
            yield zookeeper.topics(client, walked)
    else:
        from gateway.pipeline.ledgers import admin

        access = admin.Access(options.admin, options.token_file, options.ca_file)
        with admin.connected(access) as asking:
            yield admin.topics(asking, walked)


def _counted(seen: Iterator[Seen], taken: Taken, totals: Totals) -> Iterator[Snapshot]:
    """Yield the records, and tell of the progress."""
    told = time.monotonic()
    for it in seen:
        record = record_of(it, taken)
        totals.count(record)
        yield record
        if (now := time.monotonic()) - told >= EACH:
            told = now
            _say(totals.text())


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()
