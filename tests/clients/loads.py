"""Programs that offer load, and record what happened to each message of several producers, and
when.

A program gets streams (a topic, and the messages offered to it each second). Each stream has a
producer of its own; all of them share one client, and so one connection. A message contains its
number and its sender (the tag of the program, and the number of the stream), padded to a size. A
stream that is late catches up as soon as it can.
"""

import json
import sys
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.real.brokers.jars import Say, tool

from .builders import BUILDERS
from .programs import Program, Running

CHECKOUT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Offer:
    """The load of one program beside its streams.

    `batch`: messages per batch at most, 0: no batches. `pending`: messages without a receipt at
    most, 0: the library's default; further messages wait, or fail at once. `patience`: seconds to
    wait for receipts at the end. `limit`: seconds after which the program ends in any case.
    """

    size: int = 0
    batch: int = 0
    pending: int = 1000
    blocks: bool = True
    patience: int = 0
    limit: int = 120

    def words(self) -> list[str]:
        words = {
            "size": self.size,
            "batch-of": self.batch,
            "pending": self.pending,
            "when-full": "block" if self.blocks else "fail",
            "patience-s": self.patience,
        }
        return [word for name, value in words.items() for word in (f"--{name}", str(value))]


@dataclass(frozen=True)
class Stream:
    """One producer's messages by number, in nanoseconds of the wall clock. `settled`: 0 for not
    yet. `errors`: None for messages that have a receipt or wait for one."""

    topic: str
    sent: Sequence[int]
    settled: Sequence[int]
    errors: Sequence[str | None]

    @property
    def acknowledged(self) -> Iterator[int]:
        """Yield the numbers of messages with a receipt."""
        for number, (when, error) in enumerate(zip(self.settled, self.errors, strict=True)):
            if when and error is None:
                yield number

    @property
    def receipts(self) -> Iterator[tuple[int, int]]:
        """Yield the times of sending and receipt of acknowledged messages."""
        for number in self.acknowledged:
            yield self.sent[number], self.settled[number]


@contextmanager
def loading(
    program: Program, url: str, streams: Sequence[tuple[str, float]], file: Path, offer: Offer
) -> Iterator[Running]:
    """Yield the running program until it is told to stop; then `read` reads the file. The file's
    stem is the tag."""
    asked = ",".join(f"{topic}={rate}" for topic, rate in streams)
    words = ["load", asked, str(file), "--tag", file.stem, *offer.words()]
    bounded = Program(program.name, program.command, offer.limit)
    with bounded.running(url, words, file.with_suffix(".log")) as running:
        yield running


def read(file: Path) -> list[Stream]:
    """Return what a program wrote at its end."""
    with file.open("rb") as content:
        head = json.loads(content.readline())
        streams = []
        for topic, count in zip(head["topics"], head["counts"], strict=True):
            columns = [array("q") for _ in range(3)]
            for column in columns:
                column.fromfile(content, count)
            sent, settled, codes = columns
            texts = [None, *head["errors"]]
            streams.append(Stream(topic, sent, settled, [texts[code] for code in codes]))
    return streams


def python_load(_say: Say) -> Program:
    """Use the package that the tests themselves use."""
    module = (sys.executable, "-m", "tests.clients.python.load")
    return Program("python", (tool("env"), f"PYTHONPATH={CHECKOUT}", *module))


LOADS = {"python": python_load, **BUILDERS}
"""The programs that can offer load."""
