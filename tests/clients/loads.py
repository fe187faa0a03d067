"""Programs that offer load: what each message of several producers met, and when.

A program is given streams (a topic, and the messages that are offered to it each second), each of
which has a producer of its own; all of them share one client, so one connection. A message is its
number and who sent it (the tag of the program, and the number of the stream), padded to a size.
What a stream cannot send in time it sends as soon as it can.
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
    """What one program offers, beside its streams. `batch`: messages in one at most, 0: they are
    not batched. `pending`: messages without a receipt at most, 0: as usual with the library; what
    is sent beyond that waits, or fails at once. `patience`: seconds to wait for receipts at the
    end. `limit`: it ends after so many seconds in any case.
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
    """One producer's messages by their numbers, in nanoseconds of the clock of the day. `settled`:
    0 for none yet. `errors`: None for those that have a receipt, or wait for it.
    """

    topic: str
    sent: Sequence[int]
    settled: Sequence[int]
    errors: Sequence[str | None]

    @property
    def acknowledged(self) -> Iterator[int]:
        """The numbers of those that have a receipt."""
        for number, (when, error) in enumerate(zip(self.settled, self.errors, strict=True)):
            if when and error is None:
                yield number

    @property
    def receipts(self) -> Iterator[tuple[int, int]]:
        """When those were sent, and had it."""
        for number in self.acknowledged:
            yield self.sent[number], self.settled[number]


@contextmanager
def loading(
    program: Program, url: str, streams: Sequence[tuple[str, float]], file: Path, offer: Offer
) -> Iterator[Running]:
    """The program while it runs, until it is told to stop; then `read` reads the file. Its name
    without the ending is the tag.
    """
    asked = ",".join(f"{topic}={rate}" for topic, rate in streams)
    words = ["load", asked, str(file), "--tag", file.stem, *offer.words()]
    bounded = Program(program.name, program.command, offer.limit)
    with bounded.running(url, words, file.with_suffix(".log")) as running:
        yield running


def read(file: Path) -> list[Stream]:
    """What a program wrote at its end."""
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
    """On the package that tests themselves use."""
    module = (sys.executable, "-m", "tests.clients.python.load")
    return Program("python", (tool("env"), f"PYTHONPATH={CHECKOUT}", *module))


LOADS = {"python": python_load, **BUILDERS}
"""Who can offer load."""
