"""A plot in SVG of offered and passed rates over time, with a panel for each way."""

from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

from .results import Trial

WIDTH, HEIGHT, LEFT, TOP, GAP = 720, 200, 60, 40, 50
OFFERED, PASSED, LIMIT = "#888888", "#1a6fb0", "#c0392b"
STYLE = "text{font:13px sans-serif;fill:#333}path{fill:none;stroke-width:1.5}"


def draw(trials: Sequence[Trial], file: Path) -> None:
    """Draw the latest trial of each way with a curve."""
    chosen = {it.way: it for it in trials if it.curve and not it.failure}
    highest = max((max(it.curve["offered"]) for it in chosen.values()), default=1.0) * 1.1
    height = TOP + len(chosen) * (HEIGHT + GAP)
    body = [
        line
        for number, it in enumerate(chosen.values())
        for line in _panel(it, TOP + number * (HEIGHT + GAP), highest)
    ]
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + 20} {height}">'
    white = '<rect width="100%" height="100%" fill="white"/>'
    lines = [head, f"<style>{STYLE}</style>", white, *_key(), *body, "</svg>"]
    file.write_text("\n".join(lines) + "\n")


def _key() -> Iterator[str]:
    names = {"offered": OFFERED, "passed": PASSED, "limit": LIMIT}
    for number, (name, colour) in enumerate(names.items()):
        x = LEFT + 90 * number
        yield f'<path d="M{x} 14h20" stroke="{colour}"/><text x="{x + 26}" y="18">{name}</text>'


def _panel(trial: Trial, top: int, highest: float) -> Iterator[str]:
    base = top + HEIGHT
    step = float(trial.curve["step"])
    lasts = step * len(trial.curve["passed"])
    level = base - HEIGHT * trial.limit / highest
    title = f"limited by the {escape(trial.way)}: messages a second"
    yield f'<text x="{LEFT}" y="{top - 6}">{title}</text>'
    yield f'<path d="M{LEFT} {top}V{base}H{LEFT + WIDTH}" stroke="#333333"/>'
    yield f'<path d="M{LEFT} {level:.1f}h{WIDTH}" stroke="{LIMIT}" stroke-dasharray="5 4"/>'
    yield f'<text x="{LEFT - 8}" y="{level + 4:.1f}" text-anchor="end">{trial.limit:,.0f}</text>'
    for name, colour in (("offered", OFFERED), ("passed", PASSED)):
        yield _line(trial.curve[name], colour, base, highest)
    for second in range(0, int(lasts) + 1, 2):
        x = LEFT + WIDTH * second / lasts
        yield f'<text x="{x:.1f}" y="{base + 16}" text-anchor="middle">{second} s</text>'


def _line(values: Sequence[float], colour: str, base: int, highest: float) -> str:
    """Return a path in steps: each value is that of its whole interval."""
    width = WIDTH / len(values)
    ups = (f"V{base - HEIGHT * value / highest:.1f}h{width:.2f}" for value in values)
    return f'<path d="M{LEFT} {base}{"".join(ups)}" stroke="{colour}"/>'
