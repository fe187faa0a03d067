"""Which topics a tenant used most."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from gateway.pipeline.billing.charts import share_bar
from gateway.pipeline.billing.figures import Topic
from gateway.pipeline.billing.markup import Markup, name, tag
from gateway.pipeline.billing.sheet import Column, Record, table
from gateway.pipeline.billing.wording import bytes_text, number_text

MOST: Final = 10
"""Topics that are shown: more belong into a table of their own."""

_COLUMNS: Final = (
    Column("Topic"),
    Column("In and out"),
    Column("Data in", is_number=True),
    Column("Data out", is_number=True),
    Column("Messages in", is_number=True),
    Column("Messages out", is_number=True),
    Column("Records", is_number=True),
)


def top(topics: Sequence[Topic]) -> list[Topic]:
    """Return the topics with most bytes, then most messages, then by name; at most `MOST`."""
    return sorted(
        topics,
        key=lambda it: (-(it.bytes_in + it.bytes_out), -(it.msgs_in + it.msgs_out), it.name),
    )[:MOST]


def topic_table(topics: Sequence[Topic], known: str) -> Iterator[Markup]:
    """Yield the table of the largest topics. `known`: which part of the records is there."""
    found = top(topics)
    most = max(it.bytes_in + it.bytes_out for it in found)
    if len(topics) > len(found):
        yield tag("p", f"The {len(found)} largest by data, of {len(topics):,}.", class_="quiet")
    yield table("Topics with most data", _COLUMNS, [_row(it, most, known) for it in found])


def _row(topic: Topic, most: int, known: str) -> Record:
    title = f"{bytes_text(topic.bytes_in)} in, {bytes_text(topic.bytes_out)} out"
    return Record(
        (
            name(topic.name),
            share_bar((("in", topic.bytes_in), ("out", topic.bytes_out)), most, title),
            bytes_text(topic.bytes_in),
            bytes_text(topic.bytes_out),
            number_text(topic.msgs_in),
            number_text(topic.msgs_out),
            known,
        )
    )
