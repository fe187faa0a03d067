"""`gateway top`: what a running gateway does, live in a terminal.

It reads the feed of the console, as the page does, on this machine or on another one.
"""

from __future__ import annotations

import json
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from http.client import HTTPException
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from gateway.errors import ConfigurationError

PATIENCE = 10.0
"""Seconds without an event after which the gateway is asked again; an event comes each second."""

PAUSE = 1.0
"""Seconds until the gateway is asked again."""

SHOWN = 12
"""Rows of a table, so that all tables fit on a screen."""

LONGEST_EVENT = 8 << 20
"""Bytes of one event: 50 rows of the longest names have less."""

_FAILURES = (OSError, HTTPException, ValueError, LookupError)

_REFUSALS = (401, 403, 421)


def run(url: str, token_file: Path | None, ca_file: Path | None, *, seconds: float | None) -> int:
    """Show the state of a running gateway in the terminal, until Ctrl-C or for some `seconds`.
    Return the exit status: 1 if the gateway was never reached, else 0. Raises
    `ConfigurationError`."""
    feed = Feed(_checked(url), _token(token_file), _context(ca_file))
    until = None if seconds is None else time.monotonic() + seconds
    console = Console()
    shown = False
    try:
        with Live(console=console, screen=console.is_terminal, auto_refresh=False) as live:
            for second in follow(feed, until):
                shown = shown or isinstance(second, dict)
                live.update(screen(second, url), refresh=True)
    except KeyboardInterrupt:
        pass
    return 0 if shown else 1


class Feed(NamedTuple):
    """Where a console's feed is read. `token`: the API's token; None: the API needs no token.
    `context`: for connections with TLS."""

    url: str
    token: str | None = None
    context: ssl.SSLContext | None = None

    def seconds(self) -> Iterator[dict[str, Any]]:
        """Yield the state of the gateway each second, as the feed sends it. Raises one of
        `_FAILURES` if the feed cannot be read."""
        headers = {} if self.token is None else {"Authorization": f"Bearer {self.token}"}
        request = urllib.request.Request(f"{self.url}/api/v1/feed", headers=headers)  # noqa: S310
        with urllib.request.urlopen(  # noqa: S310 - the scheme was checked
            request, timeout=PATIENCE, context=self.context
        ) as answer:
            name = b""
            while line := answer.readline(LONGEST_EVENT):
                key, _, value = line.rstrip(b"\r\n").partition(b": ")
                if key == b"event":
                    name = value
                elif key == b"data" and name == b"second":
                    yield json.loads(value)


def follow(
    feed: Feed, until: float | None, sleep: Callable[[float], None] = time.sleep
) -> Iterator[dict[str, Any] | str]:
    """Yield the state of the gateway each second. While the feed cannot be read, yield a text that
    says why, and try again. `until`: monotonic seconds at which to end; None: never. Raises
    `ConfigurationError` if the console refuses the request."""
    while until is None or time.monotonic() < until:
        try:
            for second in feed.seconds():
                yield second
                if until is not None and time.monotonic() >= until:
                    return
            yield "has ended the feed"
        except urllib.error.HTTPError as error:
            if error.code in _REFUSALS:
                raise ConfigurationError(
                    f"{feed.url}: {_refusal(error)}; see --token-file"
                ) from None
            yield f"answers {error.code}"
        except _FAILURES as failure:
            yield f"cannot be read: {getattr(failure, 'reason', failure)}"
        sleep(PAUSE)


def _refusal(error: urllib.error.HTTPError) -> str:
    try:
        return str(json.loads(error.read(LONGEST_EVENT))["error"])
    except (*_FAILURES, TypeError):
        return f"refuses ({error.code})"


# -- the screen ------------------------------------------------------------------------------------


def screen(second: dict[str, Any] | str, url: str) -> Group | Panel:
    """Return what the terminal shows. `second`: the state of the gateway, or a text that says why
    there is no state."""
    if isinstance(second, str):
        return Panel(Text(f"{url} {second}. Asking again; Ctrl-C ends."), style="yellow")
    return Group(
        _head(second, url),
        _busiest("Tenants", "tenant", second["tenants"]),
        _busiest("Top talkers", "topic", second["topics"]),
        _held(second["held"]),
        _latency(second["latency"]),
        _rest(second),
    )


def _head(second: dict[str, Any], url: str) -> Panel:
    now, drain = second["now"], second["drain"]
    text = Text.assemble(
        ("to brokers ", "dim"),
        (f"{_count(now['to_broker']['messages'])}/s ", "bold blue"),
        f"{_bytes(now['to_broker']['bytes'])}/s   ",
        ("to clients ", "dim"),
        (f"{_count(now['to_client']['messages'])}/s ", "bold green"),
        f"{_bytes(now['to_client']['bytes'])}/s   ",
        ("connections ", "dim"),
        (f"{now['connections']}   ", "bold"),
        ("held ", "dim"),
        (_bytes(now["held_bytes"]), "bold"),
    )
    if drain is not None:
        text.append(f"\ndraining: {drain['connections']} of {drain['began']} left", "bold yellow")
    title = Text(f"gateway {second['process']['version']} {url}")
    return Panel(text, title=title, title_align="left")


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", expand=True, box=None)
    for at, column in enumerate(columns):
        table.add_column(column, justify="right" if at else "left", no_wrap=True)
    return table


def _busiest(title: str, what: str, rows: Iterable[dict[str, Any]]) -> Table:
    table = _table(title, what, "in/s", "out/s", "bytes in/s", "bytes out/s", "held", "clients")
    for row in list(rows)[:SHOWN]:
        table.add_row(
            _name(row[what]),
            _count(row["to_broker"]["messages"]),
            _count(row["to_client"]["messages"]),
            _bytes(row["to_broker"]["bytes"]),
            _bytes(row["to_client"]["bytes"]),
            _bytes(row["held_bytes"]) if row["held_bytes"] else "",
            str(row["producers"] + row["consumers"]),
        )
    return table


def _held(rows: Iterable[dict[str, Any]]) -> Table:
    table = _table("Held", "topic", "rule", "waits", "seconds of the last")
    for row in list(rows)[:SHOWN]:
        waited = f"{row['wait_seconds']:.2f}"
        table.add_row(_name(row["topic"]), _name(row["rule"]), _bytes(row["bytes"]), waited)
    return table


def _latency(rows: Iterable[dict[str, Any]]) -> Table:
    table = _table("Latency", "of the last minute", "half", "90 %", "99 %", "counted")
    for row in rows:
        quantiles = (_duration(row[name]) for name in ("p50", "p90", "p99"))
        table.add_row(_name(row["what"]), *quantiles, _count(row["count"]))
    return table


def _rest(second: dict[str, Any]) -> Text:
    text = Text()
    for broker in second["brokers"]:
        text.append(f"{broker['broker']} ", "green" if broker["healthy"] else "bold red")
    denied = sum(denial["number"] for denial in second["denials"])
    if denied:
        text.append(f"  {denied} rights denied", "yellow")
    for reason in second["ready"]:
        text.append(f"  not ready: {reason}", "yellow")
    return text


def _name(text: str) -> Text:
    """Return a name that a client may have chosen: no markup, and nothing that a terminal obeys."""
    return Text(text if text.isprintable() else ascii(text), overflow="ellipsis", no_wrap=True)


def _count(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.1f}"


def _bytes(value: float) -> str:
    for unit in ("B", "KB", "MB", "GB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"


def _duration(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    if seconds < 0.001:
        return f"{seconds * 1e6:.0f} us"
    return f"{seconds * 1000:.1f} ms" if seconds < 1 else f"{seconds:.1f} s"


# -- the command line ------------------------------------------------------------------------------


def _checked(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigurationError(f"{url}: is no URL of a console; like http://127.0.0.1:8090")
    return f"{parts.scheme}://{parts.netloc}"


def _token(file: Path | None) -> str | None:
    if file is None:
        return None
    try:
        return file.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        raise ConfigurationError(f"{file}: cannot be read as a token") from None


def _context(file: Path | None) -> ssl.SSLContext | None:
    if file is None:
        return None
    try:
        return ssl.create_default_context(cafile=file)
    except (OSError, ssl.SSLError):
        raise ConfigurationError(f"{file}: holds no certificates in PEM form") from None
