"""proto/managed_ledger.proto against the table of facts beside this file, and the generated module
against it."""

from __future__ import annotations

import csv
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)

from gateway.pipeline.ledgers._proto import managed_ledger_pb2

ROOT = Path(__file__).parents[4]
GENERATED = Path("gateway/pipeline/ledgers/_proto")
FILE = FileDescriptorProto.FromString(managed_ledger_pb2.DESCRIPTOR.serialized_pb)

Row = tuple[str, int, str, str, str]
"""Message, number, label, type and name of a field, or of a value of an enum."""


def table() -> set[Row]:
    with Path(__file__).with_name("fields.tsv").open(newline="") as lines:
        return {
            (it["message"], int(it["number"]), it["label"], it["type"], it["name"])
            for it in csv.DictReader(lines, delimiter="\t")
        }


def described() -> Iterator[Row]:
    for message in FILE.message_type:
        yield from rows(message, message.name)
    for enum in FILE.enum_type:
        for value in enum.value:
            yield enum.name, value.number, "enum", "", value.name


def rows(message: DescriptorProto, name: str) -> Iterator[Row]:
    for field in message.field:
        label = FieldDescriptorProto.Label.Name(field.label).removeprefix("LABEL_").lower()
        scalar = FieldDescriptorProto.Type.Name(field.type).removeprefix("TYPE_").lower()
        of_ours = field.type_name.removeprefix(f".{FILE.package}.")
        yield name, field.number, label, of_ours or scalar, field.name
    for nested in message.nested_type:
        yield from rows(nested, f"{name}.{nested.name}")


def test_all_that_is_described_is_in_the_table() -> None:
    found = list(described())
    assert len(found) > 20
    assert set(found) - table() == set()


def test_the_package_is_ours() -> None:
    assert FILE.package == "gateway.ledgers"
    assert Path(FILE.name).parent == GENERATED


@pytest.mark.tier("test")
def test_regenerating_changes_nothing(tmp_path: Path) -> None:
    pytest.importorskip(
        "grpc_tools", reason="needs the tools of the `proto` extra: pip install '.[proto]'"
    )
    subprocess.run([sys.executable, ROOT / "proto" / "regenerate.py", tmp_path], check=True)
    assert texts(tmp_path / GENERATED) == texts(ROOT / GENERATED)


def texts(folder: Path) -> dict[str, str]:
    found = {path.name: path.read_text() for path in folder.glob("*_pb2.py*")}
    assert len(found) == 2
    return found
