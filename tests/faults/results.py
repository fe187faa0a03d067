"""What became of the clients, as lines of JSON, so that trials of several runs add up."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.results import lines_of

DIRECT, THROUGH = "direct", "through"


@dataclass(frozen=True)
class Outcome:
    """What became of one pair's messages.

    `unconfirmed`: without a receipt, though a later one had one; `missing`: acknowledged, and never
    received; `doubled`: stored twice; `again`: redelivered; `disordered`: first received after a
    later one of their key; `longest`: seconds until a send got a receipt or an error; `errors`: the
    libraries' errors, each text once; `broken`: why there are no figures.
    """

    client: str
    way: str
    acknowledged: int = 0
    unconfirmed: int = 0
    received: int = 0
    missing: int = 0
    doubled: int = 0
    again: int = 0
    disordered: int = 0
    longest: float = 0.0
    errors: tuple[str, ...] = ()
    broken: str = ""


@dataclass(frozen=True)
class Trial:
    """One run of a fault. `brokers`: the load manager; `facts`: what was hit, and how long it took;
    `gateway`: its end reasons and counters; `failure`: why the trial was given up."""

    fault: str
    brokers: str
    at: str
    outcomes: tuple[Outcome, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    gateway: Mapping[str, Any] = field(default_factory=dict)
    failure: str = ""


def read(file: Path) -> Iterator[Trial]:
    for found in lines_of(file):
        outcomes = tuple(
            Outcome(**each | {"errors": tuple(each["errors"])}) for each in found["outcomes"]
        )
        yield Trial(**found | {"outcomes": outcomes})
