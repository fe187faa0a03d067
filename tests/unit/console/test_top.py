"""`gateway top`: what it shows, and what it says when there is nothing to show."""

from __future__ import annotations

import io
import urllib.error
import urllib.request
from collections.abc import Iterator
from email.message import Message
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from gateway.__main__ import main
from gateway.console import top
from gateway.console.facts import Draining
from gateway.console.top import Feed, follow, screen
from gateway.errors import ConfigurationError
from tests.unit.console.world import World, passed

URL = "http://127.0.0.1:8090"


def shown(second: dict[str, Any] | str) -> str:
    file = io.StringIO()
    Console(file=file, width=140).print(screen(second, URL))
    return file.getvalue()


async def second_of(world: World, *names: str) -> dict[str, Any]:
    accounts = [world.open(name) for name in names]
    await world.second()
    for account in accounts:
        passed(account, 1234, 5_000_000)
        account.begin_wait("slow", 0.0)
        account.end_wait(0.5)
    second = await world.second()
    assert second is not None
    return second


async def test_a_second_is_shown_with_all_its_parts() -> None:
    world = World()
    world.draining = Draining(10, 4)
    text = shown(await second_of(world, "persistent://acme/web/orders"))
    for part in (
        *("1,234/s", "5.0 MB/s", "persistent://acme/web/orders", "slow", "0.50"),
        *("draining: 4 of 10 left", "b:1", "4 rights denied", "not ready: draining"),
    ):
        assert part in text


async def test_names_are_neither_markup_nor_orders_to_the_terminal() -> None:
    text = shown(await second_of(World(), "persistent://acme/web/[red]\x1b[2J"))
    assert "\x1b" not in text
    assert "[red]" in text


def test_a_gateway_that_is_gone_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    tries: list[float] = []

    def fail(*_: object, **__: object) -> None:
        raise urllib.error.URLError(ConnectionRefusedError(111, "Connection refused"))

    monkeypatch.setattr(urllib.request, "urlopen", fail)
    found = follow(Feed(URL), None, tries.append)
    told = [next(found) for _ in range(3)]
    assert all("Connection refused" in str(it) for it in told)
    assert "Asking again" in shown(told[0])
    assert tries == [top.PAUSE] * 2


@pytest.mark.parametrize("body", [b'{"error": "a token is needed"}', b"[]", b"no json"])
def test_a_refusal_ends_it_with_advice(monkeypatch: pytest.MonkeyPatch, body: bytes) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise urllib.error.HTTPError(URL, 401, "no", Message(), io.BytesIO(body))

    monkeypatch.setattr(urllib.request, "urlopen", refuse)
    with pytest.raises(ConfigurationError, match="see --token-file"):
        next(follow(Feed(URL), None))


@pytest.mark.parametrize("lines", [b"event: second\ndata: no json\n", b"x" * 100])
def test_an_answer_that_is_no_feed_is_told(monkeypatch: pytest.MonkeyPatch, lines: bytes) -> None:
    monkeypatch.setattr(urllib.request, "urlopen", lambda *_, **__: io.BytesIO(lines))
    assert isinstance(next(follow(Feed(URL), None, lambda _: None)), str)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["nowhere"], "nowhere: is no URL of a console; like http://127.0.0.1:8090"),
        (["file:///etc/passwd"], "file:///etc/passwd: is no URL of a console; like"),
        (["--token-file", "missing"], "missing: cannot be read as a token"),
        (["--ca-file", "missing"], "missing: holds no certificates in PEM form"),
    ],
)
def test_mistakes_are_explained(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["top", *arguments]) == 2
    assert capsys.readouterr().err.startswith(told)


def test_the_status_says_whether_there_was_a_gateway(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def nothing(*_: object) -> Iterator[str]:
        yield "cannot be read"

    monkeypatch.setattr(top, "follow", nothing)
    (tmp_path / "token").write_text("t" * 20)
    assert main(["top", "--token-file", str(tmp_path / "token")]) == 1
