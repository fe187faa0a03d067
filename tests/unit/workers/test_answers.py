"""The parent's readiness and metrics for all workers."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from gateway.admin.server import Answer
from gateway.workers.answers import Answers
from gateway.workers.crew import Crew


class FakeCrew:
    """Workers whose answers the test sets in `told`, by subject and number."""

    def __init__(self) -> None:
        self.told: dict[str, dict[int, list[Any]]] = {"unready": {}, "/metrics": {}}
        self.lives = {1: 0, 2: 0}
        self.running, self.restarts = 2, 0

    async def ask(self, subject: str, patience: float) -> dict[int, list[Any]]:
        """See `Crew`."""
        await trio.lowlevel.checkpoint()
        return self.told[subject]


class Asked:
    """`Answers` with a fake crew."""

    def __init__(self) -> None:
        self.crew = FakeCrew()
        self.draining = False
        crew: Crew = self.crew  # type: ignore[assignment]
        self.answers = Answers(crew, lambda: self.draining)

    async def readiness(self) -> tuple[int, str]:
        answer = await self.answers.ready()
        return answer.status, text(answer)

    async def samples(self) -> dict[str, float]:
        lines = text(await self.answers.metrics()).splitlines()
        pairs = (it.rpartition(" ") for it in lines if not it.startswith("#"))
        return {name: float(value) for name, _, value in pairs}


def text(answer: Answer) -> str:
    return b"".join(answer.body).decode()


@pytest.fixture
def asked() -> Asked:
    return Asked()


@pytest.mark.parametrize(
    ("told", "status", "lines"),
    [
        pytest.param({1: [[]], 2: [[]]}, 200, ["ready"], id="all"),
        pytest.param({1: [["no broker"]], 2: [[]]}, 200, ["ready"], id="one of two"),
        pytest.param({2: [[]]}, 200, ["ready"], id="the only one that answers"),
        pytest.param({}, 503, ["no worker is ready"], id="none answers"),
        pytest.param({1: [["a", "b"]], 2: [["b"]]}, 503, ["a", "b"], id="none is, and why"),
    ],
)
async def test_the_gateway_is_ready_as_long_as_one_worker_is(
    asked: Asked, told: dict[int, Any], status: int, lines: list[str]
) -> None:
    asked.crew.told["unready"] = told
    assert await asked.readiness() == (status, "".join(f"{it}\n" for it in lines))


async def test_the_gateway_is_not_ready_while_it_drains(asked: Asked) -> None:
    asked.crew.told["unready"] = {1: [[]], 2: [[]]}
    asked.draining = True
    assert await asked.readiness() == (503, "draining\n")


def figures(count: int, open: int) -> list[str]:
    return [f"# TYPE sent_total counter\nsent_total {count}\n", f"# TYPE open gauge\nopen {open}\n"]


async def test_metrics_include_all_workers_and_the_parent(asked: Asked) -> None:
    asked.crew.told["/metrics"] = {1: figures(10, 1), 2: figures(20, 2)}
    found = await asked.samples()
    assert (found["sent_total"], found["open"]) == (30, 3)
    assert (found["gateway_workers"], found["gateway_worker_restarts_total"]) == (2, 0)
    assert found["process_open_fds"] > 0


async def test_a_silent_worker_counts_with_its_last_metrics(asked: Asked) -> None:
    asked.crew.told["/metrics"] = {1: figures(10, 1), 2: figures(20, 2)}
    await asked.samples()
    asked.crew.told["/metrics"] = {2: figures(21, 2)}
    found = await asked.samples()
    assert (found["sent_total"], found["open"]) == (31, 3)


async def test_counters_do_not_fall_when_a_worker_ends(asked: Asked) -> None:
    asked.crew.told["/metrics"] = {1: figures(10, 1), 2: figures(20, 2)}
    await asked.samples()
    asked.crew.lives = {1: 1, 2: 0}
    asked.crew.told["/metrics"] = {2: figures(21, 2)}
    found = await asked.samples()
    assert (found["sent_total"], found["open"]) == (31, 2)
    asked.crew.told["/metrics"] = {1: figures(1, 1), 2: figures(21, 2)}
    assert (await asked.samples())["sent_total"] == 32


async def test_simultaneous_scrapes_count_nothing_twice(asked: Asked) -> None:
    asked.crew.told["/metrics"] = {1: figures(10, 1), 2: figures(20, 2)}
    await asked.samples()
    asked.crew.lives = {1: 1, 2: 0}
    asked.crew.told["/metrics"] = {2: figures(21, 2)}
    found: list[float] = []

    async def scrape() -> None:
        found.append((await asked.samples())["sent_total"])

    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(scrape)
    assert found == [31, 31, 31]
