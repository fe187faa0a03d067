"""Results of scenarios as lines of JSON, so that several runs add up."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.results import lines_of

from .figures import Waits


@dataclass(frozen=True)
class Passed:
    """What became of one flow.

    Per second of the window: `offered` messages that clients tried to send, `passed` messages with
    a receipt; `fairness` of its producers (Jain's index). In all: `acknowledged`, `failed` by
    error, `waiting` for either. Of the messages read back: `stored`; `missing`: acknowledged and
    not stored; `doubled`; `disordered`.
    """

    topic: str
    producers: int
    offered: float = 0.0
    passed: float = 0.0
    fairness: float = 1.0
    waits: Waits = field(default_factory=Waits)
    acknowledged: int = 0
    failed: Mapping[str, int] = field(default_factory=dict)
    waiting: int = 0
    stored: int | None = None
    missing: int = 0
    doubled: int = 0
    disordered: int = 0


@dataclass(frozen=True)
class Trial:
    """One run of a scenario.

    `limit`: what passes a second, in `unit`s; `size`: bytes of a message as the limiting component
    counts them, 0 if unknown; `offer`: as in the scenario; `elapsed`: seconds from the first send
    to the last receipt. `facts`: further findings. `gateway`: see `play`. `curve`: offered and
    passed rates over time.
    """

    part: str
    name: str
    client: str
    way: str
    at: str
    limit: float = 0.0
    unit: str = ""
    size: float = 0.0
    seconds: float = 0.0
    elapsed: float = 0.0
    offer: Mapping[str, Any] = field(default_factory=dict)
    programs: int = 1
    flows: tuple[Passed, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    gateway: Mapping[str, Any] = field(default_factory=dict)
    curve: Mapping[str, Any] = field(default_factory=dict)
    failure: str = ""


def read(file: Path) -> Iterator[Trial]:
    for found in lines_of(file):
        flows = tuple(
            Passed(**each | {"waits": Waits(**each["waits"])}) for each in found.pop("flows")
        )
        yield Trial(**found, flows=flows)
