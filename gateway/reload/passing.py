"""How rules pass from the process that read them to the one that is to hold clients to them.

They are pickled: values come as they were checked, and checking them anew would take three times as
long. What is unpickled has come by a pipe that only our own child writes.

One pickler and one unpickler for all: what rules have in common passes once, and is kept once.
"""

from __future__ import annotations

import pickle
from io import BytesIO
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gateway.policy.rules import Rule


def write(rules: Sequence[Rule], to: BinaryIO) -> None:
    """Write rules, and first how many they are."""
    pickler = pickle.Pickler(to, pickle.HIGHEST_PROTOCOL)
    pickler.dump(len(rules))
    for rule in rules:
        pickler.dump(rule)


def parse(written: bytes) -> Iterator[Rule]:
    """Answer the rules, each when it is asked for. Raises `EOFError` where some are missing."""
    unpickler = pickle.Unpickler(BytesIO(written))  # noqa: S301 - see above
    for _ in range(unpickler.load()):
        yield unpickler.load()
