"""The descriptions in proto/ against the table of facts beside this file, and the generated modules
against the descriptions."""

import csv
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)

from gateway.wire.pulsar._proto import pulsar_markers_pb2, pulsar_metadata_pb2, pulsar_wire_pb2
from gateway.wire.pulsar._proto.pulsar_wire_pb2 import BaseCommand

ROOT = Path(__file__).parents[4]
GENERATED = Path("gateway/wire/pulsar/_proto")
MODULES = (pulsar_metadata_pb2, pulsar_wire_pb2, pulsar_markers_pb2)
FILES = [FileDescriptorProto.FromString(module.DESCRIPTOR.serialized_pb) for module in MODULES]


class Row(NamedTuple):
    """A field of a message, or a value of an enum, in the words of the table."""

    message: str
    number: int
    label: str
    type: str
    name: str
    default: str


def table() -> list[Row]:
    """The rows of fields.tsv. `since`, the Pulsar release that brought a row, is for people."""
    with Path(__file__).with_name("fields.tsv").open(newline="") as lines:
        rows = csv.DictReader(lines, delimiter="\t")
        return [
            Row(r["message"], int(r["number"]), r["label"], r["type"], r["name"], r["default"])
            for r in rows
        ]


def described() -> list[Row]:
    return [row for file in FILES for row in rows_of_file(file)]


def rows_of_file(file: FileDescriptorProto) -> Iterator[Row]:
    for enum in file.enum_type:
        yield from rows_of_enum(enum, enum.name)
    for message in file.message_type:
        yield from rows_of_message(message, message.name)


def rows_of_message(message: DescriptorProto, name: str) -> Iterator[Row]:
    yield from (row_of_field(message, name, field) for field in message.field)
    for enum in message.enum_type:
        yield from rows_of_enum(enum, f"{name}.{enum.name}")
    for nested in message.nested_type:
        yield from rows_of_message(nested, f"{name}.{nested.name}")


def rows_of_enum(enum: EnumDescriptorProto, name: str) -> Iterator[Row]:
    return (Row(name, value.number, "enum", "", value.name, "") for value in enum.value)


def row_of_field(message: DescriptorProto, name: str, field: FieldDescriptorProto) -> Row:
    label = FieldDescriptorProto.Label.Name(field.label).removeprefix("LABEL_").lower()
    if field.HasField("oneof_index"):
        label += f"(oneof {message.oneof_decl[field.oneof_index].name})"
    scalar = FieldDescriptorProto.Type.Name(field.type).removeprefix("TYPE_").lower()
    of_ours = re.sub(r"^\.gateway\.pulsar\.(markers\.)?", "", field.type_name)
    return Row(name, field.number, label, of_ours or scalar, field.name, field.default_value)


def test_every_row_of_the_table_is_described() -> None:
    assert set(table()) - set(described()) == set()


def test_nothing_is_described_beyond_the_table() -> None:
    assert set(described()) - set(table()) == set()
    assert len(described()) == len(table())


def test_only_ping_and_pong_are_empty() -> None:
    empty = {message.name for file in FILES for message in file.message_type if not message.field}
    assert empty == {"CommandPing", "CommandPong"}


def test_every_name_is_in_a_package_of_ours() -> None:
    assert [file.package for file in FILES] == [
        "gateway.pulsar",
        "gateway.pulsar",
        "gateway.pulsar.markers",
    ]
    assert all(Path(file.name).parent == GENERATED for file in FILES)


def test_an_unknown_command_type_reads_as_absent_and_is_written_back() -> None:
    of_tomorrow = bytes([8, 99])  # field 1, a varint: 99
    command = BaseCommand.FromString(of_tomorrow)
    assert not command.HasField("type")
    assert command.type == BaseCommand.CONNECT  # why readers must ask HasField
    assert command.SerializePartialToString() == of_tomorrow


@pytest.mark.tier("test")
def test_regenerating_changes_nothing(tmp_path: Path) -> None:
    pytest.importorskip(
        "grpc_tools", reason="needs the tools of the `proto` extra: pip install '.[proto]'"
    )
    subprocess.run([sys.executable, ROOT / "proto" / "regenerate.py", tmp_path], check=True)
    assert texts(tmp_path / GENERATED) == texts(ROOT / GENERATED)


def texts(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.glob("*_pb2.py*")}


def test_the_modules_load_under_the_oldest_protobuf_that_we_accept() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    accepted = next(line for line in project["dependencies"] if line.startswith("protobuf"))
    for name, text in texts(ROOT / GENERATED).items():
        if name.endswith(".py"):
            assert re.findall(r"# Protobuf Python Version: (.+)", text) == re.findall(
                r">=([\d.]+)", accepted
            )
