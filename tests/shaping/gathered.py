"""Combines what clients recorded, what the broker stored and what the gateway reports of a
scenario."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from tests.clients.loads import Stream
from tests.real.gateways import Gateway
from tests.real.metrics import scrape, settled_total, total

from . import stored
from .figures import SECOND, Waits, Window, failures, jain, per_step
from .results import Passed
from .scenarios import Flow, Scenario
from .watch import Look

CURVE_STEP = 0.25
"""In seconds."""

Senders = Mapping[str, Stream]
"""By the signature in their messages."""


@dataclass(frozen=True)
class Played:
    """A played scenario. `topics`: full names by short ones; `url`: the broker's."""

    scenario: Scenario
    topics: Mapping[str, str]
    senders: Senders
    url: str

    @cached_property
    def window(self) -> Window:
        return Window.behind(self.senders.values(), self.scenario.warm_up, self.scenario.seconds)

    @property
    def elapsed(self) -> float:
        """Return the seconds from the first send to the last receipt."""
        receipts = [pair for it in self.senders.values() for pair in it.receipts]
        if not receipts:
            return 0.0
        return (max(when for _, when in receipts) - min(sent for sent, _ in receipts)) / SECOND

    def passed(self, flow: Flow) -> Passed:
        topic = self.topics[flow.topic]
        mine = {tag: it for tag, it in self.senders.items() if it.topic == topic}
        counted = self._counted(flow.topic, mine)
        if not self.scenario.reads:
            return counted
        found = stored.read(self.url, topic, counted.acknowledged)
        # All messages with a receipt must be there.
        missing = sum(len(set(it.acknowledged) - found.numbers[tag]) for tag, it in mine.items())
        return replace(
            counted,
            stored=found.count,
            missing=missing,
            doubled=found.doubled,
            disordered=found.disordered,
        )

    def _counted(self, topic: str, mine: Senders) -> Passed:
        window = self.window
        receipts = [list(it.receipts) for it in mine.values()]
        counts = [window.count(when for _, when in each) for each in receipts]
        tries, acknowledged = sum(len(it.sent) for it in mine.values()), sum(map(len, receipts))
        failed = failures(mine.values())
        return Passed(
            topic,
            len(mine),
            sum(window.count(it.sent) for it in mine.values()) / window.seconds,
            sum(counts) / window.seconds,
            jain(counts),
            Waits.of(pair for each in receipts for pair in each if window.holds(pair[1])),
            acknowledged,
            failed,
            tries - acknowledged - sum(failed.values()),
        )

    def curve(self) -> dict[str, Any]:
        """Return offered and passed rates of the limited traffic, from the first send on."""
        topic = self.topics[self.scenario.flows[0].topic]
        mine = [it for it in self.senders.values() if it.topic == topic]
        start = min(it.sent[0] for it in mine)
        steps = int((self.scenario.warm_up + self.scenario.seconds) / CURVE_STEP)
        sent = [moment for it in mine for moment in it.sent]
        settled = [when for it in mine for _, when in it.receipts]
        offered = per_step(sent, start, CURVE_STEP, steps)
        passed = per_step(settled, start, CURVE_STEP, steps)
        return {"step": CURVE_STEP, "offered": offered, "passed": passed}


def told(gateway: Gateway, looks: Sequence[Look]) -> dict[str, float]:
    """Return the gateway's own figures: the most bytes kept, those still kept, and the share of
    time in which any were; memory before and at most; connections accepted, and ended before the
    load ended; frames passed, and CPU seconds."""
    text = scrape(gateway.metrics_url)
    first, last = looks[0], looks[-1]
    return {
        "buffered": max(it.buffered for it in looks),
        "left": settled_total(gateway.metrics_url, 0.0, "gateway_buffered_bytes"),
        "waiting": sum(it.buffered > 0 for it in looks[1:]) / max(1, len(looks) - 1),
        "memory before": first.memory,
        "memory": max(it.memory for it in looks),
        "connections": last.accepted,
        "ended": last.ended,
        "frames": total(text, "gateway_topic_frames_total", direction="to_broker"),
        "cpu": last.cpu - first.cpu,
    }
