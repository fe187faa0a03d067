"""When rules are reloaded, and what happens with the result."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import AsyncIterator, Callable, Iterator, MutableMapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import structlog
import trio
import trio.testing
from structlog.testing import capture_logs

from gateway.policy import expiry
from gateway.policy.matching import RuleSet
from gateway.policy.rules import Rule
from gateway.reload import reloader
from gateway.reload.reading import Refused
from gateway.reload.reloader import Reloader, run_in_slices
from gateway.system.files import LOOK, Sign
from gateway.telemetry.figures import ReloadFigures
from tests.unit.reload.samples import rule, written

OLD, SAME = rule("old"), rule("same")
SIGNS: list[Sign] = [(Path("a"),), (Path("b"),), (Path("c"),)]

Lines = Sequence[MutableMapping[str, Any]]


@pytest.fixture
def lines() -> Iterator[Lines]:
    """Return the captured log lines."""
    structlog.reset_defaults()
    with capture_logs() as captured:
        yield captured


class Scene:
    """A reloader whose reader returns what the test sets."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *rules: Rule) -> None:
        rules = rules or (OLD, SAME)
        self.says: bytes | Refused = written(*rules)
        self.reads = 0
        self.was_asked = trio.Event()
        self.may_read = trio.Event()
        self.may_read.set()
        self.adopted: list[RuleSet] = []
        self.figures = ReloadFigures(loaded_at=0)
        self.before = RuleSet.compile(rules, time.time())
        seen = frozenset(SIGNS[:1])
        self.reloader = Reloader([], self.before, self._adopt, self.figures, seen)
        monkeypatch.setattr(reloader, "read", self._read)
        monkeypatch.setattr(reloader, "signs", lambda _: SIGNS[:1])

    def shows(self, monkeypatch: pytest.MonkeyPatch, *signs: Sign) -> None:
        """Set the signs that successive looks see; the last one stays."""
        began = trio.current_time()

        def seen(_: object) -> list[Sign]:
            look = round((trio.current_time() - began) / LOOK) - 1
            return [signs[min(max(look, 0), len(signs) - 1)]]

        monkeypatch.setattr(reloader, "signs", seen)

    async def _read(self, _: object) -> bytes | Refused:
        self.reads += 1
        self.was_asked.set()
        await self.may_read.wait()
        return self.says

    def _adopt(self, rules: RuleSet) -> Iterator[None]:
        self.adopted.append(rules)
        yield

    @asynccontextmanager
    async def runs(self) -> AsyncIterator[None]:
        async with trio.open_nursery() as nursery:
            await nursery.start(self.reloader.run)
            yield
            nursery.cancel_scope.cancel()

    async def reloads(self, *rules: Rule) -> None:
        """Run one reload to its end."""
        self.says = written(*rules)
        async with self.runs():
            self.reloader.ask()
            await trio.testing.wait_all_tasks_blocked()


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch, lines: Lines) -> Scene:
    return Scene(monkeypatch)


# -- results -----------------------------------------------------------------------------------


async def test_new_rules_are_put_in_force_and_logged(scene: Scene, lines: Lines) -> None:
    await scene.reloads(SAME, rule("new"), rule("newer"))
    (found,) = scene.adopted
    assert [found.rule(it) for it in ("old", "same", "new")] == [None, SAME, rule("new")]
    (line,) = lines
    told = {"generation": 2, "rules": 3, "added": 2, "removed": 1, "changed": 0}
    assert line["event"] == "rules_loaded"
    assert line.items() >= told.items()
    assert (scene.figures.generation, scene.figures.loaded, scene.figures.refused) == (2, 1, 0)
    assert scene.figures.loaded_at > 0


async def test_each_reload_is_compared_with_the_previous_one(scene: Scene, lines: Lines) -> None:
    await scene.reloads(OLD, rule("same", "5/s"))
    await scene.reloads(OLD, rule("same", "5/s"), rule("new"))
    told = [(it["added"], it["removed"], it["changed"]) for it in lines]
    assert told == [(0, 0, 1), (1, 0, 0)]


async def test_unchanged_rules_stay_in_force(scene: Scene, lines: Lines) -> None:
    await scene.reloads(SAME, OLD)
    assert scene.adopted == []
    assert (scene.figures.generation, scene.figures.loaded) == (1, 1)
    assert [it["event"] for it in lines] == ["rules_loaded"]


async def test_a_refusal_changes_nothing_and_logs_every_mistake(scene: Scene, lines: Lines) -> None:
    scene.says = Refused(("a.yaml:1: one", "a.yaml:2: another"))
    async with scene.runs():
        scene.reloader.ask()
        await trio.testing.wait_all_tasks_blocked()
    assert scene.adopted == []
    assert (scene.figures.generation, scene.figures.loaded, scene.figures.refused) == (1, 0, 1)
    (line,) = lines
    assert (line["event"], line["log_level"]) == ("rules_refused", "error")
    assert line["mistakes"] == ("a.yaml:1: one", "a.yaml:2: another")


async def test_a_bug_is_logged_and_the_next_reload_works(scene: Scene, lines: Lines) -> None:
    scene.says = written(OLD, rule("new"))[:-1]
    async with scene.runs():
        scene.reloader.ask()
        await trio.testing.wait_all_tasks_blocked()
        assert scene.adopted == []
        scene.says = written(OLD)
        scene.reloader.ask()
        await trio.testing.wait_all_tasks_blocked()
    assert [it["event"] for it in lines] == ["rules_not_reloaded", "rules_loaded"]
    assert (scene.figures.loaded, scene.figures.refused) == (1, 1)


async def test_the_previous_rules_are_released(scene: Scene) -> None:
    await scene.reloads(SAME)
    assert len(scene.before) == 0
    assert len(scene.adopted[0]) == 1


# -- when ----------------------------------------------------------------------------------------


async def test_reloads_do_not_overlap(scene: Scene) -> None:
    """Several requests during a reload cause one more."""
    scene.may_read = trio.Event()
    async with scene.runs():
        scene.reloader.ask()
        await trio.testing.wait_all_tasks_blocked()
        for _ in range(3):
            scene.reloader.ask()
        await trio.testing.wait_all_tasks_blocked()
        assert scene.reads == 1
        scene.may_read.set()
        await trio.testing.wait_all_tasks_blocked()
    assert scene.reads == 2


async def test_sighup_requests_a_reload(scene: Scene) -> None:
    async with scene.runs():
        os.kill(os.getpid(), signal.SIGHUP)
        await scene.was_asked.wait()
    assert scene.reads == 1


async def test_a_signal_at_the_last_moment_is_discarded(scene: Scene) -> None:
    """The signal would be delivered again, and end the process."""
    taken: list[int] = []
    before = signal.signal(signal.SIGHUP, lambda *_: taken.append(1))
    try:
        async with scene.runs():
            signal.raise_signal(signal.SIGHUP)  # `os.kill` may return before this thread has it
    finally:
        signal.signal(signal.SIGHUP, before)
    assert taken == []


@pytest.mark.parametrize(
    ("looks", "reads"),
    [
        pytest.param([0, 0, 0, 0], 0, id="unchanged"),
        pytest.param([1, 1, 1, 1], 1, id="changed"),
        pytest.param([0, 1, 2, 2], 1, id="still being written"),
        pytest.param([1, 0, 0, 0], 0, id="changed back"),
        pytest.param([1, 2, 1, 2], 0, id="written all the time"),
        pytest.param([1, 1, 2, 2], 2, id="changed twice"),
    ],
)
async def test_changed_files_are_read(
    scene: Scene,
    monkeypatch: pytest.MonkeyPatch,
    autojump_clock: trio.testing.MockClock,
    looks: list[int],
    reads: int,
) -> None:
    """They are read once two looks saw the same."""
    scene.shows(monkeypatch, *(SIGNS[it] for it in looks))
    async with scene.runs():
        await trio.sleep((len(looks) + 0.5) * LOOK)
    assert scene.reads == reads


async def test_files_that_a_signal_reloaded_are_not_read_again(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.testing.MockClock
) -> None:
    scene.shows(monkeypatch, SIGNS[1])
    async with scene.runs():
        scene.reloader.ask()
        await trio.sleep(5.5 * LOOK)
    assert scene.reads == 1


@pytest.mark.parametrize(("passes", "reads"), [(True, 3), (False, 1)])
async def test_a_temporary_failure_is_retried(
    scene: Scene, autojump_clock: trio.testing.MockClock, passes: bool, reads: int
) -> None:
    scene.says = Refused(("why",), passes)
    async with scene.runs():
        scene.reloader.ask()
        await trio.sleep(2.5 * reloader.AGAIN)
        scene.says = written(OLD, SAME)
        await trio.sleep(5 * reloader.AGAIN)
    assert scene.reads == reads + passes


# -- rules that expire ---------------------------------------------------------------------------


class Clock:
    """A wall clock that goes with trio's, in place of the machine's; `now` sets it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._ahead = 0.0
        self.now = NOON
        monkeypatch.setattr("gateway.reload.reloader.time.time", lambda: self.now)

    @property
    def now(self) -> float:
        return trio.current_time() + self._ahead

    @now.setter
    def now(self, now: float) -> None:
        self._ahead = now - trio.current_time()


NOON = datetime(2026, 12, 24, 12, tzinfo=UTC).timestamp()


def ends(id: str, seconds: float, rate: str = "100/s") -> Rule:
    """Return a rule that expires so many seconds after noon."""
    return rule(id, rate, expires=expiry.written(datetime.fromtimestamp(NOON + seconds, UTC)))


@pytest.fixture
async def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


Rules = Callable[..., Scene]
Jumping = trio.testing.MockClock


@pytest.fixture
def ruled(clock: Clock, monkeypatch: pytest.MonkeyPatch, lines: Lines) -> Rules:
    return partial(Scene, monkeypatch)


def in_force(rules: RuleSet) -> list[str]:
    return [it.id for it in rules if it.id not in rules.expired]


async def test_the_others_stay_in_force_when_a_rule_expires(
    autojump_clock: Jumping, ruled: Rules, lines: Lines
) -> None:
    scene = ruled(SAME, ends("first", 10), ends("second", 1000))
    async with scene.runs():
        await trio.sleep(9.99)
        assert scene.adopted == []
        await trio.sleep(0.02)
        (found,) = scene.adopted
        assert in_force(found) == ["same", "second"]
        await trio.sleep(980)
        assert len(scene.adopted) == 1
        await trio.sleep(20)
    assert in_force(scene.adopted[1]) == ["same"]
    assert scene.reads == 0, "no file is read"
    told = [(it["event"], it["log_level"], it["rules"]) for it in lines]
    assert told == [
        ("rules_expired", "info", ["first"]),
        ("rules_expired", "info", ["second"]),
    ]
    assert (scene.figures.generation, scene.figures.expired, scene.figures.loaded) == (3, 2, 0)
    assert [it.rule for it in scene.reloader.expired()] == ["second", "first"]
    assert scene.reloader.expired()[1].since == "2026-12-24T12:00:10Z"


async def test_rules_that_expire_together_are_left_out_together(
    autojump_clock: Jumping, ruled: Rules, lines: Lines
) -> None:
    scene = ruled(SAME, *(ends(f"r-{number:02}", 5) for number in range(30)))
    async with scene.runs():
        await trio.sleep(6)
    assert len(scene.adopted) == 1
    (line,) = lines
    assert (line["number"], line["rules"]) == (30, [f"r-{number:02}" for number in range(20)])


async def test_a_rule_that_had_expired_at_the_start_is_told_once(
    autojump_clock: Jumping, ruled: Rules, lines: Lines
) -> None:
    scene = ruled(SAME, ends("past", -1))
    async with scene.runs():
        scene.reloader.ask()
        await trio.sleep(60)
    assert scene.adopted == []
    told = [(it["event"], it["log_level"]) for it in lines]
    assert told == [("rules_expired", "warning"), ("rules_loaded", "info")]
    assert lines[1]["expired"] == 1


async def test_a_reload_may_bring_a_rule_that_has_expired(
    autojump_clock: Jumping, ruled: Rules, lines: Lines
) -> None:
    scene = ruled(SAME)
    await scene.reloads(SAME, ends("past", -1))
    assert [in_force(it) for it in scene.adopted] == [["same"]]
    assert [it["event"] for it in lines] == ["rules_loaded", "rules_expired"]
    assert (lines[0]["added"], lines[0]["expired"]) == (1, 1)


async def test_a_rule_with_a_new_expiry_is_in_force_again(
    autojump_clock: Jumping, ruled: Rules, lines: Lines
) -> None:
    scene = ruled(SAME, ends("r", 1))
    async with scene.runs():
        await trio.sleep(2)
        scene.says = written(SAME, ends("r", 2.0 + 1))
        scene.reloader.ask()
        await trio.sleep(0.5)
        assert in_force(scene.adopted[-1]) == ["same", "r"]
        assert scene.figures.expired == 0
        await trio.sleep(0.6)
        assert in_force(scene.adopted[-1]) == ["same"], "at its moment, not at the next look"
    assert [it["event"] for it in lines] == ["rules_expired", "rules_loaded", "rules_expired"]


async def test_a_clock_that_is_set_is_noticed_soon(
    autojump_clock: Jumping, ruled: Rules, lines: Lines, clock: Clock
) -> None:
    scene = ruled(SAME, ends("r", 1e6))
    async with scene.runs():
        clock.now = NOON + 1e6
        await trio.sleep(1.1 * LOOK)
        assert in_force(scene.adopted[-1]) == ["same"]
        clock.now = NOON
        await trio.sleep(2 * LOOK)
        assert len(scene.adopted) == 1
        scene.reloader.ask()
        await trio.sleep(1)
        assert in_force(scene.adopted[-1]) == ["same", "r"]
    assert [it["event"] for it in lines] == ["rules_expired", "rules_loaded"]


async def test_a_rule_expires_while_files_are_read(autojump_clock: Jumping, ruled: Rules) -> None:
    scene = ruled(SAME, ends("r", 10))
    scene.may_read = trio.Event()
    async with scene.runs():
        scene.reloader.ask()
        await trio.sleep(11)
        assert [in_force(it) for it in scene.adopted] == [["same"]]
        scene.may_read.set()
        await trio.sleep(1)
    assert len(scene.adopted) == 1, "the files have the same rules"


async def test_a_bug_in_leaving_out_rules_does_not_stop_the_service(
    autojump_clock: Jumping, ruled: Rules, monkeypatch: pytest.MonkeyPatch, lines: Lines
) -> None:
    scene = ruled(SAME, ends("r", 1))
    adopt = scene.reloader._adopt

    def fails(_: RuleSet) -> Iterator[None]:
        scene.reloader._adopt = adopt
        raise RuntimeError

    scene.reloader._adopt = fails
    async with scene.runs():
        await trio.sleep(2)
        scene.reloader.ask()
        await trio.sleep(1)
    assert [it["event"] for it in lines] == ["rules_not_reloaded", "rules_loaded"]


# -- slices --------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", [0.0001, 0.0005, 0.01])
async def test_other_tasks_run_after_each_slice(
    monkeypatch: pytest.MonkeyPatch, step: float
) -> None:
    """`step`: seconds of one step. Two slices may follow each other, as trio chooses."""
    now = 0.0
    turns = [now]

    def work() -> Iterator[int]:
        nonlocal now
        for number in range(100):
            now += step
            yield number

    async def another() -> None:
        while True:
            turns.append(now)
            await trio.lowlevel.checkpoint()

    monkeypatch.setattr("gateway.reload.reloader.time.monotonic", lambda: now)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(another)
        assert await run_in_slices(work()) == list(range(100))
        turns.append(now)
        nursery.cancel_scope.cancel()
    assert max(late - early for early, late in pairwise(turns)) <= 2 * (reloader.SLICE + step)
