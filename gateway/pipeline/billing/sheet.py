"""The frame and the style of pages: one file without scripts that asks for nothing from outside.

Colours and fonts are those of the console. On paper the page is always light.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from gateway.pipeline.billing.markup import Content, Markup, join, tag

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_STYLE: Final = """
:root {
  color-scheme: light dark;
  --ground: #f6f7f9; --sheet: #ffffff; --line: #d9dee5; --text: #17202b; --quiet: #536070;
  --in: #1657b8; --out: #0b7261; --good: #1b6e33; --warn: #8a5200;
  --warn-soft: #fdf1df; --gap: #f3dcb8; --focus: #1657b8;
}
@media screen and (prefers-color-scheme: dark) {
  :root {
    --ground: #10151c; --sheet: #18202a; --line: #313c4a; --text: #e7ecf2; --quiet: #a3b0bf;
    --in: #82b1ff; --out: #5fd3bb; --good: #7fd992; --warn: #ffc46b;
    --warn-soft: #33291a; --gap: #4a3a20; --focus: #82b1ff;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; background: var(--ground); color: var(--text);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif;
  font-variant-numeric: tabular-nums;
}
:focus-visible { outline: 3px solid var(--focus); outline-offset: 2px; }
a { color: var(--in); }
header, main, footer { max-width: 58rem; margin: 0 auto; padding: 0 1.5rem; }
header { padding-top: 2.4rem; display: flex; flex-wrap: wrap; gap: 1rem 2.5rem; }
header > div { flex: 1 1 18rem; min-width: 0; }
header .sum { flex: 0 1 auto; text-align: right; }
.kind { margin: 0; color: var(--quiet); font-size: .93rem; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: .1rem 0 .3rem; letter-spacing: -.02em;
  overflow-wrap: anywhere; }
h2 { font-size: 1.05rem; margin: 0 0 .7rem; }
h3 { font-size: .93rem; margin: 0 0 .2rem; }
.sum p { margin: 0; color: var(--quiet); }
.sum .amount { font-size: 2.1rem; line-height: 1.25; font-weight: 650; color: var(--text);
  letter-spacing: -.025em; white-space: nowrap; }
main { display: grid; gap: 1.2rem; padding-top: 1.4rem; }
section { background: var(--sheet); border: 1px solid var(--line); border-radius: .7rem;
  padding: 1.1rem 1.25rem; min-width: 0; }
section > :last-child { margin-bottom: 0; }
section p { margin: .3rem 0 .7rem; max-width: 68ch; }
.warning { border-color: var(--warn); border-left-width: .4rem; background: var(--warn-soft); }
.quiet { color: var(--quiet); }
.facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(8.8rem, 1fr));
  gap: .8rem 1.1rem; margin: 0 0 .8rem; padding: 0; }
.facts div { border-left: 3px solid var(--line); padding-left: .8rem; min-width: 0; }
.facts .good { border-color: var(--good); } .facts .bad { border-color: var(--warn); }
.facts dt { color: var(--quiet); font-size: .87rem; }
.facts dd { margin: 0; overflow-wrap: anywhere; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .93rem; }
caption { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
th, td { text-align: left; padding: .42rem 1.1rem .42rem 0; border-bottom: 1px solid var(--line);
  vertical-align: top; font-weight: 400; }
thead th { color: var(--quiet); font-weight: 500; font-size: .85rem; vertical-align: bottom; }
.number { text-align: right; white-space: nowrap; } .whole { white-space: nowrap; }
th:last-child, td:last-child { padding-right: 0; }
tbody th { overflow-wrap: anywhere; min-width: 9rem; }
tr.total th, tr.total td { font-weight: 650; border-bottom: 0;
  border-top: 2px solid var(--text); font-size: 1.02rem; }
tr.part th, tr.part td { font-weight: 500; border-bottom: 0; }
tr.nobody th, tr.nobody td { font-style: italic; }
.flag { color: var(--warn); white-space: nowrap; font-weight: 500; }
small { display: block; color: var(--quiet); font-size: .85rem; }
figure { margin: 0 0 1.3rem; }
figcaption { display: flex; flex-wrap: wrap; gap: .1rem 1.1rem; margin-bottom: .35rem; }
figcaption h3 { margin-right: auto; }
.key { color: var(--quiet); font-size: .87rem; }
.key::before { content: ""; display: inline-block; width: .75rem; height: .75rem;
  border-radius: .15rem; margin-right: .4rem; vertical-align: -.06em; background: var(--in); }
.key.out::before { background: var(--out); }
.key.gap::before { background: var(--gap); border: 1px dashed var(--warn); }
svg { display: block; width: 100%; height: auto; min-width: 34rem; }
svg.small { width: 6.5rem; min-width: 0; height: .65rem; margin-top: .45rem; }
svg text { fill: var(--quiet); font-size: 11px; }
svg .in { fill: var(--in); } svg .out { fill: var(--out); }
svg .gap { fill: var(--gap); stroke: var(--warn); stroke-dasharray: 3 3; }
svg .nobody { fill: var(--warn); }
svg path { fill: none; stroke: var(--line); stroke-width: 1; }
svg path.axis { stroke: var(--quiet); }
summary { cursor: pointer; color: var(--quiet); padding: .3rem 0; }
footer { color: var(--quiet); font-size: .87rem; padding-top: 1.2rem; padding-bottom: 3rem; }
footer p { margin: .3rem 0; max-width: 78ch; }
@media (max-width: 40rem) {
  header, main, footer { padding-left: .8rem; padding-right: .8rem; }
  header .sum { text-align: left; } h1 { font-size: 1.5rem; } .sum .amount { font-size: 1.7rem; }
  section { padding: .9rem .8rem; } svg.small { width: 3.5rem; }
  .number { white-space: normal; } th, td { padding-right: .7rem; } tbody th { min-width: 7rem; }
  table:has(.total) :is(th, td):last-child { position: sticky; right: 0; padding-left: .7rem;
    background: var(--sheet); white-space: nowrap; }
}
@page { size: A4; margin: 16mm 14mm; }
@media print {
  :root { color-scheme: light; }
  body { background: none; font-size: 10pt; }
  header, main, footer { max-width: none; padding-left: 0; padding-right: 0; }
  header { padding-top: 0; }
  section { border: 0; border-radius: 0; padding: .2rem 0 .6rem; }
  .warning { border-left: .4rem solid var(--warn); padding: .5rem .8rem .6rem; }
  h2, h3, figcaption { break-after: avoid; }
  tr, figure, .facts, .warning { break-inside: avoid; }
  thead { display: table-header-group; }
  .scroll { overflow: visible; }
  svg, .key::before { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  svg { min-width: 0; }
  details::details-content { content-visibility: visible; block-size: auto; }
  summary { display: none; }
  a { color: inherit; text-decoration: none; }
}
"""

_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'"
"""The page loads nothing and runs nothing, whatever a name may hold."""


def page(title: str, *content: Content) -> str:
    """Return a whole page."""
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", title),
        tag("link", rel="icon", href="data:,"),
        tag("style", Markup(_STYLE)),
    )
    return f"<!doctype html>\n{tag('html', head, tag('body', *content), lang='en')}\n"


class Column(NamedTuple):
    """The head of a column. `is_number`: its cells stand at the right."""

    title: str
    is_number: bool = False


class Record(NamedTuple):
    """A row of a table: its first cell is the head of the row. `kind`: a class of the style."""

    cells: tuple[Content, ...]
    kind: str | None = None


def table(caption: str, columns: Sequence[Column], rows: Iterable[Record]) -> Markup:
    """Return a table, with headers of columns and rows, that scrolls where it is too wide."""
    head = tag("tr", *(_cell("th", it.title, it, scope="col") for it in columns))
    body = [
        tag(
            "tr",
            _cell("th", row.cells[0], columns[0], scope="row"),
            *(_cell("td", it, at) for it, at in zip(row.cells[1:], columns[1:], strict=True)),
            class_=row.kind,
        )
        for row in rows
    ]
    made = tag("table", tag("caption", caption), tag("thead", head), tag("tbody", *body))
    # With the keyboard too: a region that scrolls can be focused and has a name.
    return tag("div", made, class_="scroll", tabindex=0, role="region", aria_label=caption)


def _cell(kind: str, content: Content, column: Column, scope: str | None = None) -> Markup:
    return tag(kind, content, class_="number" if column.is_number else None, scope=scope)


def section(title: str, *content: Content, kind: str | None = None) -> Markup:
    """Return a part of the page with its heading."""
    return tag("section", tag("h2", title), *content, class_=kind)


def facts(pairs: Iterable[tuple[str, Content, str | None]]) -> Markup:
    """Return a list of names, what they are, and the class of the style."""
    found = (tag("div", tag("dt", a), tag("dd", b), class_=kind) for a, b, kind in pairs)
    return tag("dl", *found, class_="facts")


def paragraphs(*texts: Content) -> Markup:
    """Return paragraphs."""
    return join(tag("p", it) for it in texts)
