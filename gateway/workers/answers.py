"""What the parent's admin listener answers, for all workers together."""

from __future__ import annotations

from collections.abc import Callable
from itertools import starmap

import trio

from gateway.admin.routes import alive, exposed, readiness
from gateway.admin.server import Answer, Long, Routes
from gateway.telemetry.crew import CrewMetrics
from gateway.telemetry.figures import CrewFigures, LogFigures
from gateway.workers.crew import Crew
from gateway.workers.merging import merged
from gateway.workers.past import Life, Past

PROBE_PATIENCE = 0.5
"""Seconds for a worker to say whether it is ready; Kubernetes waits for one."""

SCRAPE_PATIENCE = 3.0
"""Seconds for a worker's metrics. A scrape has ten; 100,000 lines take half a second of a worker
that has nothing else to do."""


class Answers:
    """Asks all workers at once. Of one that does not answer in time its last metrics count."""

    def __init__(
        self, crew: Crew, is_draining: Callable[[], bool], log: LogFigures | None = None
    ) -> None:
        self._crew = crew
        self._is_draining = is_draining
        self._past = Past()
        self._asking = trio.Lock()
        figures = LogFigures() if log is None else log
        self._metrics = CrewMetrics(lambda: CrewFigures(crew.running, crew.restarts), figures)

    def routes(self) -> Routes:
        """See `gateway.admin.routes`."""
        return {"/livez": alive, "/readyz": self.ready, "/metrics": Long(self.metrics)}

    async def ready(self) -> Answer:
        """Clients may come as long as there is a worker that would serve them."""
        if self._is_draining():
            return readiness(["draining"])
        told = await self._crew.ask("unready", PROBE_PATIENCE)
        reasons = [reasons for (reasons,) in told.values()]
        if not all(reasons):
            return readiness([])
        each = dict.fromkeys(reason for them in reasons for reason in them)
        return readiness(list(each) or ["no worker is ready"])

    async def metrics(self) -> Answer:
        """Metrics of all, as those of one."""
        async with self._asking:
            lives = self._crew.lives
            told = await self._crew.ask("metrics", SCRAPE_PATIENCE)
            self._past.take({Life(it, lives[it]): parts for it, parts in told.items()})
            for _ in self._past.bury(frozenset(starmap(Life, self._crew.lives.items()))):
                await trio.lowlevel.checkpoint()
            texts = [[self._metrics.render().decode()], *self._past.texts()]
        return exposed(merged(texts))
