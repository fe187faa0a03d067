"""How records are cut into batches: by the records alone, so that the same file is cut the same."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from gateway.usage.client import AT_ONCE, LARGEST, batches, trusted
from gateway.usage.reading import LONGEST_LINE
from gateway.usage.sending import Row


def sizes(*lines: int) -> list[int]:
    rows = (Row(seq, "k", 0, b"x" * line) for seq, line in enumerate(lines, 1))
    return [len(it) for it in cut(rows)]


def cut(rows: Iterable[Row]) -> Iterator[list[Row]]:
    return batches(rows, lambda row: len(row.line), AT_ONCE, LARGEST)


def test_a_batch_ends_at_its_number_of_records() -> None:
    assert sizes(*[1] * (2 * AT_ONCE + 1)) == [AT_ONCE, AT_ONCE, 1]


def test_a_batch_ends_at_its_size() -> None:
    assert sizes(LARGEST - 1, LONGEST_LINE, 1, LARGEST, 1) == [2, 2, 1]


def test_no_records_are_no_batch() -> None:
    assert sizes() == []


def test_a_disk_that_fails_ends_no_batch() -> None:
    def rows() -> Iterator[Row]:
        yield Row(1, "k", 0, b"x")
        raise OSError(5, "Input/output error")

    with pytest.raises(OSError, match="Input"):
        list(cut(rows()))


def test_the_machines_own_authorities_come_first(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    own = tmp_path / "ca.crt"
    own.touch()
    monkeypatch.setenv("SSL_CERT_FILE", str(own))
    assert trusted() == str(own)
