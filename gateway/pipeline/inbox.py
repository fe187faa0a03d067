"""The inbox: what comes from a topic becomes files beside the tables, which `ingest` then takes.

    TABLES/inbox/STREAM/dt=YYYY-MM-DD/TOPIC-TIME-ID/part-*.txt.gz

A batch of messages is acknowledged once its file is there. So a run that is killed loses nothing:
the next one takes the files that it left, and what it did not acknowledge comes again, in another
file, and counts once by its identity.

Files stay for a day after they were taken: until then a job that runs at the same time may win
with tables that do not have them; see `lake`.
"""

from __future__ import annotations

import re
import secrets
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812

from gateway.pipeline.ingest import folder_of, listing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from gateway.pipeline.lake import Lake

KEPT_MS = 86_400_000
"""For which files stay after they were taken: more than any job runs."""

LONGEST_MESSAGE = 1 << 20
"""Bytes of a message that are kept. Records have some 500; what is longer is none."""

_DAY = r"/dt=(\d{4}-\d\d-\d\d)/"


def folder(lake: Lake) -> str:
    """Return the folder, which has the form of those of gateways."""
    return f"{lake.base}/inbox"


def fill(
    lake: Lake,
    stream: str,
    topic: str,
    batches: Iterable[list[bytes]],
    now_ms: int,
    *,
    progress: Callable[[int], None] = lambda _: None,
) -> int:
    """Write each batch of a topic's messages, one message a line, before asking for the next one;
    return how many messages there were. `progress` is called with their number so far."""
    time, number = datetime.fromtimestamp(now_ms / 1000, UTC), 0
    name = re.sub(r"[^A-Za-z0-9.-]+", "_", topic)
    place = f"{folder_of(folder(lake), stream)}/dt={time:%Y-%m-%d}/{name}-{time:%H%M%S}"
    for batch in batches:
        lines = [(line(message),) for message in batch]
        rows = lake.spark.createDataFrame(lines, "value string", verifySchema=False)
        written = rows.coalesce(1).write.option("compression", "gzip")
        written.text(f"{place}-{secrets.token_hex(4)}")
        number += len(batch)
        progress(number)
    return number


def line(message: bytes) -> str:
    """Return a message as one line. In JSON a break of lines means nothing, and bytes that are no
    UTF-8 are refused, here as in files."""
    text = message[:LONGEST_MESSAGE].decode(errors="backslashreplace")
    return text.replace("\n", " ").replace("\r", " ")


def clear(lake: Lake, stream: str, now_ms: int) -> list[str]:
    """Empty the days whose files were all taken more than a day ago; return these days."""
    place = folder_of(folder(lake), stream)
    taken = lake.read("files", state=lake.state(now_ms - KEPT_MS)).select("path", "size")
    listed = listing(lake.spark, place)
    left = listed.join(taken.withColumn("is_taken", F.lit(True)), ["path", "size"], "left")
    day = F.regexp_extract("path", _DAY, 1)
    days = left.groupBy(day.alias("day")).agg(F.every(F.col("is_taken").isNotNull()).alias("all"))
    found = sorted(str(row.day) for row in days.where("all AND day != ''").collect())
    for it in found:
        lake.remove(f"inbox/{stream}/dt={it}")
    return found
