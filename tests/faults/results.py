"""What became of the clients, kept as lines of JSON: the trials of several runs add up."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.results import lines_of

DIRECT, THROUGH = "direct", "through"


@dataclass(frozen=True)
class Outcome:
    """What became of one pair's messages. `unconfirmed`: without a receipt, though a later one had
    one; `missing`: confirmed, and never received; `doubled`: stored twice; `again`: delivered once
    more; `disordered`: first received behind a later one of their key; `longest`: seconds until a
    send was settled, by a receipt or an error; `errors`: what the libraries said, each text once;
    `broken`: why there are no figures.
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
    """One fault, once. `brokers`: the load manager; `facts`: what happened to whom, and how long
    it took; `gateway`: why its connections ended, and what it counted; `failure`: why it was given
    up.
    """

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
