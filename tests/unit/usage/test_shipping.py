"""The gateway's side of its shipper, with programs that play one."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import structlog
import trio
from structlog.testing import LogCapture

from gateway.usage.shipment import Brief, Shown
from gateway.usage.shipping import Shipping
from gateway.wire.contract import Credential, Denial, Refusal

pytestmark = pytest.mark.tier("test")

BRIEF = Brief("folder", "edge", {"usage": "persistent://ops/usage/records"}, "mq://broker")
SECRET = "s3cret"
PATIENCE = 30.0

PLAY = """\
import json, sys, time

def say(type, **fields):
    print(json.dumps({"type": type, **fields}), flush=True)

def hear():
    return json.loads(sys.stdin.readline())

brief = hear()
"""


@pytest.fixture
def lines() -> Iterator[LogCapture]:
    captured = LogCapture()
    structlog.configure(processors=[captured])
    yield captured
    structlog.reset_defaults()


def shipping(program: str, credential: Callable[[], Credential | Denial] | None = None) -> Shipping:
    shown = credential or (lambda: Credential("token", SECRET.encode()))
    command = [sys.executable, "-c", PLAY + program]
    return Shipping(BRIEF, shown, program=command, patience=PATIENCE)


async def until(condition: Callable[[], object]) -> None:
    with trio.fail_after(PATIENCE):
        while not condition():  # noqa: ASYNC110 - figures are plain numbers
            await trio.sleep(0.01)


def events(lines: LogCapture) -> list[str]:
    return [it["event"] for it in lines.entries if it["event"] != "usage_shipper_started"]


async def test_it_hears_of_what_was_sent(lines: LogCapture) -> None:
    made = shipping(
        """
say("Waiting", files={"usage": 2})
say("Sent", stream="usage", records=5)
say("Sent", stream="usage", records=7)
say("Waiting", files={"usage": 1})
say("Unreadable", file="a")
while hear()["type"] != "Finish": pass
"""
    )
    figures = made.figures.streams["usage"]
    await made.during(lambda: until(lambda: figures.waiting == 1 and events(lines)))
    assert (figures.records, made.figures.failures, made.figures.restarts) == (12, 0, 0)
    assert events(lines) == ["usage_file_unreadable"]


async def test_a_topic_that_is_away_is_logged_once_and_once_more_when_it_is_back(
    lines: LogCapture,
) -> None:
    made = shipping(
        """
for _ in range(3): say("Away", reason="Timeout")
for _ in range(3): say("Sent", stream="usage", records=1)
while hear()["type"] != "Finish": pass
"""
    )
    await made.during(lambda: until(lambda: made.figures.streams["usage"].records == 3))
    assert made.figures.failures == 3
    assert events(lines) == ["usage_topic_away", "usage_topic_back"]
    assert lines.entries[1]["reason"] == "Timeout"


async def test_it_says_what_to_show_whenever_that_changes() -> None:
    shown: list[Credential | Denial] = [
        Denial(Refusal.NOT_READY, "none yet"),
        Credential("token", b"one"),
        Credential("token", b"one"),
        Credential("token", b"two"),
    ]
    made = shipping(
        """
heard = []
while (it := hear())["type"] != "Finish": heard.append(it["data"]); say("Away", reason=it["data"])
""",
        lambda: shown.pop(0) if len(shown) > 1 else shown[0],
    )
    await made.during(lambda: until(lambda: made.figures.failures == 2))
    assert Shown.of("token", b"two").secret == b"two"


async def test_secrets_are_on_no_command_line_and_in_no_environment(tmp_path: Path) -> None:
    out = tmp_path / "seen"
    made = shipping(
        f"""
shown = hear()
seen = open("/proc/self/cmdline").read() + open("/proc/self/environ").read()
open({str(out)!r}, "w").write(json.dumps([shown, seen]))
say("Sent", stream="usage", records=1)
while hear()["type"] != "Finish": pass
"""
    )
    await made.during(lambda: until(lambda: made.figures.streams["usage"].records))
    shown, seen = json.loads(out.read_text())
    assert shown["data"] == Shown.of("token", SECRET.encode()).data
    assert SECRET not in seen
    assert shown["data"] not in seen


async def test_one_that_ends_is_replaced(lines: LogCapture) -> None:
    made = shipping("sys.exit(3)")
    await made.during(lambda: until(lambda: made.figures.restarts >= 2))
    ended = [it for it in lines.entries if it["event"] == "usage_shipper_ended"]
    assert ended[0]["status"] == 3


async def test_one_that_is_not_understood_is_replaced(lines: LogCapture) -> None:
    made = shipping('say("Novelty"); time.sleep(1000)')
    await made.during(lambda: until(lambda: made.figures.restarts >= 2))
    assert events(lines)[:2] == ["usage_shipper_failed", "usage_shipper_ended"]


async def test_one_that_cannot_be_started_is_tried_again(lines: LogCapture) -> None:
    made = Shipping(BRIEF, lambda: Credential("none", b""), program=["/dev/null"])
    await made.during(lambda: until(lambda: made.figures.restarts >= 2))
    assert "cannot be started" in lines.entries[0]["reason"]


async def test_at_the_end_it_may_send_what_is_left() -> None:
    made = shipping(
        """
while hear()["type"] != "Finish": pass
say("Sent", stream="usage", records=9)
"""
    )
    await made.during(trio.lowlevel.checkpoint)
    assert made.figures.streams["usage"].records == 9


async def test_one_that_does_not_end_is_killed() -> None:
    made = shipping("time.sleep(1000)")
    made._patience = 0.01
    with trio.fail_after(PATIENCE):
        await made.during(trio.lowlevel.checkpoint)


async def test_a_gateway_that_fails_waits_for_no_shipper() -> None:
    async def fail() -> None:
        raise RuntimeError("a bug")

    made = shipping("time.sleep(1000)")
    with trio.fail_after(PATIENCE), pytest.RaisesGroup(pytest.RaisesExc(RuntimeError)):
        await made.during(fail)
