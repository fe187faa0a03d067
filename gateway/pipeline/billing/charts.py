"""Bars as inline SVG, made by hand. Colours come from the page's style, by class."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Final, NamedTuple

from gateway.pipeline.billing.markup import Markup, join, tag

WIDTH: Final = 720
_HEIGHT: Final = 190
_LEFT: Final = 62
_RIGHT: Final = 8
_TOP: Final = 12
_BOTTOM: Final = 24
_FLOOR: Final = _HEIGHT - _BOTTOM

_STEPS: Final = 4
"""Lines above zero."""

_GAP: Final = 0.26
"""Part of a column's width that stays free."""

_LEAST: Final = 1.5
"""Height of a bar that is not zero: what was used is seen."""


class Column(NamedTuple):
    """One column of a chart: a bar for each series. `is_marked`: something is wrong with it."""

    label: str
    title: str
    values: tuple[int, ...]
    is_marked: bool = False


class Chart(NamedTuple):
    """A chart of columns. `series`: classes of the bars. `show`: the text of a value. `key` is
    unique on the page."""

    key: str
    title: str
    description: str
    series: tuple[str, ...]
    columns: Sequence[Column]
    show: Callable[[int], str]
    label_every: int = 1


def bars(chart: Chart) -> Markup:
    """Return a chart with a scale, columns and their labels. All values are 0 or more."""
    top = ceiling(max((max(it.values) for it in chart.columns), default=0))
    width = (WIDTH - _LEFT - _RIGHT) / max(len(chart.columns), 1)
    marks = [
        _column(chart, column, _LEFT + number * width, width, top)
        for number, column in enumerate(chart.columns)
    ]
    return tag(
        "svg",
        tag("title", chart.title, id=f"{chart.key}-title"),
        tag("desc", chart.description, id=f"{chart.key}-desc"),
        *_scale(chart, top),
        *marks,
        role="img",
        aria_labelledby=f"{chart.key}-title {chart.key}-desc",
        viewBox=f"0 0 {WIDTH} {_HEIGHT}",
    )


def ceiling(most: int) -> int:
    """Return the end of a scale: a round number that is not below `most` and divides by steps."""
    power = 1
    while True:
        for lead in (4, 8, 12, 16, 20, 24, 32, 40):
            if lead * power >= most:
                return lead * power
        power *= 10


def _scale(chart: Chart, top: int) -> list[Markup]:
    lines = []
    for step in range(_STEPS + 1):
        y = _FLOOR - (_FLOOR - _TOP) * step / _STEPS
        end = WIDTH - _RIGHT
        kind = "axis" if step == 0 else "grid"
        lines.append(tag("path", class_=kind, d=f"M{_LEFT} {y:.1f}H{end}"))
        text = chart.show(top * step // _STEPS)
        lines.append(tag("text", text, x=_LEFT - 7, y=f"{y + 3.5:.1f}", text_anchor="end"))
    return lines


def _column(chart: Chart, column: Column, x: float, width: float, top: int) -> Markup:
    inner = width * (1 - _GAP)
    each = inner / max(len(chart.series), 1)
    found: list[Markup] = [tag("title", column.title)]
    begin = x + (width - inner) / 2
    if column.is_marked:
        size = {"width": f"{width:.1f}", "height": f"{_FLOOR - _TOP}"}
        found.append(tag("rect", class_="gap", x=f"{x:.1f}", y=_TOP, **size))
    for number, (kind, value) in enumerate(zip(chart.series, column.values, strict=True)):
        if value > 0:
            height = max(float(Fraction(value, top)) * (_FLOOR - _TOP), _LEAST)
            place = {"x": f"{begin + number * each:.1f}", "y": f"{_FLOOR - height:.1f}"}
            size = {"width": f"{each:.1f}", "height": f"{height:.1f}"}
            found.append(tag("rect", class_=kind, **place, **size))
    if column.label:
        middle = f"{x + width / 2:.1f}"
        found.append(tag("text", column.label, x=middle, y=_HEIGHT - 7, text_anchor="middle"))
    return tag("g", *found)


def share_bar(parts: Sequence[tuple[str, int]], most: int, title: str) -> Markup:
    """Return a small bar of parts on top of one another's end, of at most `most` in all."""
    x, found = 0.0, []
    for kind, value in parts:
        width = 100 * float(Fraction(max(value, 0), max(most, 1)))
        if width:
            size = {"x": f"{x:.2f}", "width": f"{max(width, 0.6):.2f}"}
            found.append(tag("rect", class_=kind, y=0, height=10, **size))
        x += width
    return tag(
        "svg",
        tag("title", title),
        join(found),
        role="img",
        aria_label=title,
        class_="small",
        viewBox="0 0 100 10",
        preserveAspectRatio="none",
    )
