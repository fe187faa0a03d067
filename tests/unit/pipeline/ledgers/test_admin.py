"""The brokers' REST interface as a source, on a small server of our own."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import ConfigurationError, UpstreamError
from gateway.pipeline.ledgers import admin
from gateway.pipeline.ledgers.admin import Access, connected, seen_of, topics
from gateway.pipeline.ledgers.metadata import CursorInfo, LedgerInfo, Refusal, TopicInfo
from gateway.pipeline.ledgers.snapshot import Seen, Walked
from tests.unit.pipeline.ledgers.samples import cursor

BASE = "/admin/v2"
NAME = "persistent://acme/web/clicks"
HOST = "127.0.0.1"


def position(mark: str = "4:1", ranges: str = "[]", **more: Any) -> dict[str, Any]:
    return {"markDeletePosition": mark, "individuallyDeletedMessages": ranges, **more}


def stats(**more: Any) -> dict[str, Any]:
    return {
        "state": "LedgerOpened",
        "currentLedgerEntries": 2,
        "currentLedgerSize": 200,
        "ledgers": [
            {"ledgerId": 4, "entries": 5, "size": 500, "offloaded": True, "underReplicated": False},
            {"ledgerId": 9, "entries": 0, "size": 0, "offloaded": False},
        ],
        "cursors": {"s%2F1": position("4:1", "[(4:2..4:3],(9:-1..9:0]]")},
    } | more


def seen(**more: Any) -> Seen:
    return seen_of(NAME, json.dumps(stats(**more)).encode())


# -- statistics -----------------------------------------------------------------------------------


def test_statistics_are_ledgers_and_cursors() -> None:
    assert seen() == Seen(
        NAME,
        TopicInfo(
            (LedgerInfo(4, 5, 500, None, offloaded=True), LedgerInfo(9, 2, 200)),
            *(9, True),
        ),
        (("s/1", cursor(4, 1, (4, 2, 3), (9, -1, 0))),),
    )


@pytest.mark.parametrize("state", ["Terminated", "Closed", "Fenced"])
def test_a_topic_that_is_not_written_has_no_open_ledger(state: str) -> None:
    found = seen(state=state).topic
    assert isinstance(found, TopicInfo)
    assert (found.open_ledger, found.open_known) == (None, False)
    assert [it.entries for it in found.ledgers] == [5, 2]


def test_a_last_ledger_with_entries_is_closed() -> None:
    found = seen(ledgers=[{"ledgerId": 4, "entries": 5, "size": 500}]).topic
    assert found == TopicInfo((LedgerInfo(4, 5, 500),))


def test_an_open_cursor_without_a_ledger_is_that_of_a_reader() -> None:
    cursors = {
        "reader": position(state="Open", cursorLedger=-1),
        "used": position(state="Open", cursorLedger=7),
        "unused": position(state="NoLedger", cursorLedger=-1),
    }
    found = {name: it.transient for name, it in seen(cursors=cursors).cursors if it}  # type: ignore[union-attr]
    assert found == {"reader": True, "unused": False, "used": False}


@pytest.mark.parametrize(
    ("mark", "ranges"),
    [
        ("", "[]"),
        ("4", "[]"),
        ("4:1:2", "[]"),
        ("4:1", ""),
        ("4:1", "["),
        ("4:1", "(4:1..4:2]"),
        ("4:1", "[(4:1..4:2]"),
        ("4:1", "[(4:1..4:2)]"),
        ("4:1", "[(4:1..4:2] (4:1..4:2]]"),
        ("4:1", "[...]"),
        ("4:1", "[(4:1..4:99999999999999999999]]"),
    ],
)
def test_a_position_that_cannot_be_read_is_a_refusal_of_its_cursor(mark: str, ranges: str) -> None:
    found = seen(cursors={"a": position(mark, ranges), "b": position()}).cursors
    assert isinstance(found[0][1], Refusal)
    assert found[1] == ("b", cursor(4, 1))


def test_more_ranges_than_the_bound_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admin, "MOST", 1)
    found = seen().cursors[0][1]
    assert isinstance(found, Refusal)


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"null", b"{}", b"\xff", b'{"state": 1}', b"[" * 100_000],
)
def test_an_answer_that_is_no_statistics_is_a_refusal(body: bytes) -> None:
    assert isinstance(seen_of(NAME, body).topic, Refusal)


def test_ledgers_that_no_broker_has_are_refused() -> None:
    assert isinstance(seen(ledgers=[{"ledgerId": -4}]).topic, Refusal)
    assert isinstance(seen(currentLedgerSize=-1).topic, Refusal)


@given(st.text(alphabet="[](),.:-0123456789", max_size=60))
def test_any_text_of_ranges_is_read_or_refused(text: str) -> None:
    found = seen(cursors={"a": position("4:1", text)}).cursors[0][1]
    assert isinstance(found, CursorInfo | Refusal)


# -- requests -------------------------------------------------------------------------------------


@dataclass
class Broker:
    """A server. `answers`: status and body (of a redirect: where it leads) by path; a path that is
    not there is answered 404. `asked`: paths and tokens."""

    answers: dict[str, tuple[int, Any]] = field(default_factory=dict)
    asked: list[tuple[str, str | None]] = field(default_factory=list)
    url: str = ""

    def say(self, path: str, body: Any, status: int = 200) -> None:
        self.answers[f"{BASE}/{path}"] = status, body

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        self.asked.append((handler.path, handler.headers.get("Authorization")))
        status, body = self.answers.get(handler.path, (404, "gone"))
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        handler.send_response(status)
        if status == 307:
            handler.send_header("Location", body)
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data)


@contextmanager
def serving() -> Iterator[Broker]:
    broker = Broker()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:  # a name of the library
            broker.answer(self)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        def handle_error(self, request: Any, client_address: Any) -> None:
            """Say nothing of clients that had enough."""

    server = Server((HOST, 0), Handler)
    server.daemon_threads = True
    broker.url = f"http://{HOST}:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield broker
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def broker() -> Iterator[Broker]:
    with serving() as served:
        served.say("tenants", ["acme"])
        served.say("namespaces/acme", ["acme/web"])
        served.say("persistent/acme/web?includeSystemTopic=true", [NAME])
        served.say("persistent/acme/web/clicks/internalStats", stats())
        yield served


def taken(broker: Broker, token_file: Path | None = None) -> tuple[list[Seen], int]:
    walked = Walked()
    with connected(Access(broker.url, token_file)) as asking:
        return list(topics(asking, walked)), walked.vanished


def test_all_topics_of_all_tenants_come_in_order(broker: Broker) -> None:
    names = [f"persistent://acme/web/t{at:02}" for at in range(30)]
    listed = [*reversed(names), "persistent://acme/web/a b/ü"]
    broker.say("persistent/acme/web?includeSystemTopic=true", listed)
    for at in range(30):
        broker.say(f"persistent/acme/web/t{at:02}/internalStats", stats())
    broker.say("persistent/acme/web/a%20b%2F%C3%BC/internalStats", stats())
    found, vanished = taken(broker)
    assert [it.name for it in found] == [listed[-1], *names]
    assert {it.topic for it in found} == {seen().topic}
    assert vanished == 0


def test_what_vanishes_meanwhile_is_left_out_and_counted(broker: Broker) -> None:
    broker.say("tenants", ["acme", "gone"])
    broker.say("persistent/acme/web?includeSystemTopic=true", [NAME, f"{NAME}2"])
    assert taken(broker) == ([seen()], 2)


@pytest.mark.parametrize("status", [401, 403, 409, 412, 500, 503])
def test_a_topic_that_fails_is_a_refusal_of_its_own(broker: Broker, status: int) -> None:
    broker.say("persistent/acme/web?includeSystemTopic=true", [NAME, f"{NAME}2"])
    broker.say("persistent/acme/web/clicks2/internalStats", "no", status)
    (whole, broken), _ = taken(broker)
    assert whole == seen()
    assert isinstance(broken.topic, Refusal)
    assert str(status) in broken.topic.text


@pytest.mark.parametrize(
    "path", ["tenants", "namespaces/acme", "persistent/acme/web?includeSystemTopic=true"]
)
@pytest.mark.parametrize(("status", "body"), [(401, ""), (500, ""), (200, {}), (200, b"[1]")])
def test_a_listing_that_fails_ends_the_walk(
    broker: Broker, path: str, status: int, body: Any
) -> None:
    broker.say(path, body, status)
    with pytest.raises(UpstreamError, match=path.split("?")[0]):
        taken(broker)


def test_an_answer_beyond_the_bound_is_a_refusal(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.say("persistent/acme/web/clicks/internalStats", stats(padding="x" * 2000))
    monkeypatch.setattr(admin, "LARGEST_ANSWER", 1000)
    ((_, refused, _),), _ = taken(broker)
    assert isinstance(refused, Refusal)
    assert "more than 1000 bytes" in refused.text


def test_a_redirect_to_the_owner_is_followed_with_the_token(broker: Broker, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("s.e.cret\n")
    path = "persistent/acme/web/clicks/internalStats"
    with serving() as owner:
        owner.say(path, stats())
        broker.say(path, f"{owner.url}{BASE}/{path}", 307)
        assert taken(broker, tmp_path / "token")[0] == [seen()]
        assert owner.asked == [(f"{BASE}/{path}", "Bearer s.e.cret")]
    assert {token for _, token in broker.asked} == {"Bearer s.e.cret"}


@pytest.mark.parametrize("target", ["", "ftp://a/b", "file:///etc/passwd", "//"])
def test_a_redirect_to_nowhere_is_a_refusal(broker: Broker, target: str) -> None:
    broker.say("persistent/acme/web/clicks/internalStats", target, 307)
    ((_, refused, _),), _ = taken(broker)
    assert isinstance(refused, Refusal)


def test_a_token_never_leaves_tls() -> None:
    with pytest.raises(UpstreamError, match="out of TLS"):
        admin._redirected("https://a/b", "http://a/b")
    assert admin._redirected("https://a/b", "https://c/d") == "https://c/d"


def test_a_broker_that_is_away_ends_the_walk() -> None:
    with serving() as broker:
        pass
    with pytest.raises(UpstreamError, match=broker.url):
        taken(broker)


@pytest.mark.parametrize("url", ["", "host:8080", "ftp://host", "http://", "http://u:p@host"])
def test_a_url_that_is_none_is_a_mistake(url: str) -> None:
    with pytest.raises(ConfigurationError, match="--admin"), connected(Access(url)):
        pass


@pytest.mark.parametrize("text", [b"", b"\n", b"a b", b"\xff", b"a\nb"])
def test_a_file_without_a_token_is_a_mistake(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "token").write_bytes(text)
    access = Access("http://a", tmp_path / "token")
    with pytest.raises(ConfigurationError, match="--token-file"), connected(access):
        pass


def test_files_that_are_not_there_are_mistakes(tmp_path: Path) -> None:
    for access, option in (
        (Access("http://a", token_file=tmp_path / "none"), "--token-file"),
        (Access("http://a", ca_file=tmp_path / "none"), "--ca-file"),
    ):
        with pytest.raises(ConfigurationError, match=option), connected(access):
            pass
