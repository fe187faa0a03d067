"""What a tenant used day by day: plots, and the same figures as a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from gateway.pipeline.billing.charts import Chart, bars
from gateway.pipeline.billing.charts import Column as Bar
from gateway.pipeline.billing.figures import Day
from gateway.pipeline.billing.markup import Markup, tag
from gateway.pipeline.billing.meters import HOUR
from gateway.pipeline.billing.sheet import Column, Record, table
from gateway.pipeline.billing.wording import (
    bytes_text,
    day_text,
    number_text,
    percent,
)

_LABEL_EVERY: Final = 5
"""Days between labels, besides the first: more would touch one another on paper."""


class _Plot(NamedTuple):
    """What a plot shows of a day. `names`: class of each series, and what it is called."""

    key: str
    title: str
    names: tuple[tuple[str, str], ...]
    of: Callable[[Day], tuple[int, ...]]
    show: Callable[[int], str]


def _hours(ms: int) -> str:
    return f"{number_text(round(ms / HOUR)) if ms >= 10 * HOUR else f'{ms / HOUR:.1f}'} h"


_PLOTS: Final = (
    _Plot(
        "data",
        "Data",
        (("in", "in"), ("out", "out")),
        lambda day: (day.bytes_in, day.bytes_out),
        bytes_text,
    ),
    _Plot(
        "messages",
        "Messages",
        (("in", "in"), ("out", "out")),
        lambda day: (day.msgs_in, day.msgs_out),
        number_text,
    ),
    _Plot(
        "connections",
        "Connection-hours",
        (("in", "open connections"),),
        lambda day: (day.connection_ms // HOUR,),
        number_text,
    ),
)


def plots(days: Sequence[Day]) -> Iterator[Markup]:
    """Yield a figure for each kind of use that occurred, with days in their order."""
    for plot in _PLOTS:
        values = [plot.of(day) for day in days]
        if any(map(any, values)):
            yield _figure(plot, days, values)


def _figure(plot: _Plot, days: Sequence[Day], values: Sequence[tuple[int, ...]]) -> Markup:
    is_marked = [not is_whole(day) for day in days]
    columns = [
        Bar(_label(day), _title(plot, day, value), value, marked)
        for day, value, marked in zip(days, values, is_marked, strict=True)
    ]
    keys = [tag("span", text, class_=f"key {kind}") for kind, text in plot.names]
    if any(is_marked):
        keys.append(tag("span", "records are missing", class_="key gap"))
    chart = Chart(
        key=plot.key,
        title=f"{plot.title} by day",
        description=_description(plot, days, values),
        series=tuple(kind for kind, _ in plot.names),
        columns=columns,
        show=plot.show,
    )
    caption = tag("figcaption", tag("h3", plot.title), *keys)
    region = tag(
        "div",
        bars(chart),
        class_="scroll",
        tabindex=0,
        role="region",
        aria_label=f"{plot.title} by day",
    )
    return tag("figure", caption, region)


def is_whole(day: Day) -> bool:
    """Return whether all records of a day are there, as far as is known."""
    return day.completeness.part in (1, None)


def _label(day: Day) -> str:
    number = day.day.day
    return str(number) if number == 1 or number % _LABEL_EVERY == 0 else ""


def _title(plot: _Plot, day: Day, value: tuple[int, ...]) -> str:
    said = ", ".join(
        f"{plot.show(it)} {text}" for it, (_, text) in zip(value, plot.names, strict=True)
    )
    missing = "" if is_whole(day) else f"; {percent(day.completeness.part)} of records"
    return f"{day_text(day.day)}: {said}{missing}"


def _description(plot: _Plot, days: Sequence[Day], values: Sequence[tuple[int, ...]]) -> str:
    """Say in words what the plot shows: sums, and the largest day."""
    sums = [sum(it) for it in zip(*values, strict=True)]
    said = " and ".join(
        f"{plot.show(it)} {text}" for it, (_, text) in zip(sums, plot.names, strict=True)
    )
    day, most = max(zip(days, values, strict=True), key=lambda it: (sum(it[1]), it[0].day))
    largest = f"the most on {day_text(day.day)}, {plot.show(sum(most))} in all"
    return f"Bars for {len(days)} days: {said}; {largest}. The table below has all figures."


_COLUMNS: Final = (
    Column("Day"),
    Column("Data in", is_number=True),
    Column("Data out", is_number=True),
    Column("Messages in", is_number=True),
    Column("Messages out", is_number=True),
    Column("Connection-hours", is_number=True),
    Column("Records", is_number=True),
)


def day_table(days: Sequence[Day]) -> Markup:
    """Return all figures as a table that opens on demand, and always on paper."""
    rows = [
        Record(
            (
                day_text(it.day),
                bytes_text(it.bytes_in),
                bytes_text(it.bytes_out),
                f"{it.msgs_in:,}",
                f"{it.msgs_out:,}",
                f"{it.connection_ms / HOUR:,.1f}",
                known(it),
            )
        )
        for it in days
    ]
    made = table("Use by day", _COLUMNS, rows)
    return tag("details", tag("summary", "All figures by day"), made)


def known(day: Day) -> Markup | str:
    """Return which part of a day's records is there, with a mark if some are missing."""
    text = percent(day.completeness.part)
    return text if is_whole(day) else tag("span", text, class_="flag")
