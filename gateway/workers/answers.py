"""The responses of the parent's admin listener, for all workers together."""

from __future__ import annotations

from collections.abc import Callable
from itertools import starmap

import trio

from gateway.admin.routes import METRICS, STARTING, TOPICS, alive, exposed, readiness
from gateway.admin.server import Answer, Long, Routes
from gateway.telemetry.figures import CrewFigures, LogFigures, ShipperFigures
from gateway.telemetry.process import CrewMetrics
from gateway.workers.crew import Crew
from gateway.workers.merging import Life, MetricsHistory, merge

PROBE_PATIENCE = 0.5
"""Seconds for a worker to report whether it is ready; Kubernetes waits for one."""

SCRAPE_PATIENCE = 3.0
"""Seconds for a worker's metrics. A scrape has ten; 100,000 lines take half a second of an
otherwise idle worker."""


class Answers:
    """Answers requests of the parent's admin listener by asking all workers at once. For a worker
    that does not answer in time, its previous metrics are used."""

    def __init__(
        self,
        crew: Crew,
        is_draining: Callable[[], bool],
        log: LogFigures | None = None,
        shipper: ShipperFigures | None = None,
    ) -> None:
        self._crew = crew
        self._is_draining = is_draining
        self._histories = {METRICS: MetricsHistory(), TOPICS: MetricsHistory()}
        self._asking = trio.Lock()
        figures = LogFigures() if log is None else log
        self._metrics = CrewMetrics(
            lambda: CrewFigures(crew.running, crew.restarts), figures, shipper
        )

    def routes(self) -> Routes:
        """Return the handlers of the admin listener's requests, by path; see
        `gateway.admin.routes`."""
        return {
            "/startupz": self.started,
            "/livez": alive,
            "/readyz": self.ready,
            METRICS: Long(self.metrics),
            TOPICS: Long(self.topics),
        }

    def started(self) -> Answer:
        """Return the response to a startup probe: 200 once any worker has begun to accept
        connections."""
        return readiness([] if self._crew.listened.is_set() else [STARTING])

    async def ready(self) -> Answer:
        """Return the response to a readiness probe: 200 as long as any worker is ready and the
        gateway does not drain."""
        if self._is_draining():
            return readiness(["draining"])
        answers = await self._crew.ask("unready", PROBE_PATIENCE)
        unready = [reasons for (reasons,) in answers.values()]
        if not all(unready):
            return readiness([])
        each = dict.fromkeys(reason for reasons in unready for reason in reasons)
        return readiness(list(each) or ["no worker is ready"])

    async def metrics(self) -> Answer:
        """Return the metrics of all workers and of this process, added up as if they were one
        process."""
        texts = await self._expositions(METRICS)
        return exposed(merge([[chunk.decode() for chunk in self._metrics.chunks()], *texts]))

    async def topics(self) -> Answer:
        """Return the metrics of topics, added up over all workers."""
        return exposed(merge(await self._expositions(TOPICS)))

    async def _expositions(self, path: str) -> list[list[str]]:
        """Return the expositions of all workers, those that ended included, to be merged."""
        history = self._histories[path]
        async with self._asking:
            lives = self._crew.lives
            answers = await self._crew.ask(path, SCRAPE_PATIENCE)
            history.record(
                {Life(worker, lives[worker]): parts for worker, parts in answers.items()}
            )
            for _ in history.retire(frozenset(starmap(Life, self._crew.lives.items()))):
                await trio.lowlevel.checkpoint()
            return history.expositions()
