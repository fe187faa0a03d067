"""The table of what happens to each field."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor

from gateway.wire.tubemq._proto import tubemq_broker_pb2 as broker
from gateway.wire.tubemq._proto import tubemq_master_pb2 as master
from gateway.wire.tubemq._proto import tubemq_rpc_pb2 as rpc
from gateway.wire.tubemq.fields import FIELDS, Care, field_of, places
from gateway.wire.tubemq.methods import METHODS

ENVELOPES = {"RequestBody.request", "RspResponseBody.data"}
"""Fields that are messages of methods themselves."""

ROOTS: list[Any] = [
    *(message for method in METHODS.values() for message in (method.request, method.reply)),
    rpc.RpcConnHeader,
    rpc.RequestHeader,
    rpc.RequestBody,
    rpc.ResponseHeader,
    rpc.RspResponseBody,
    rpc.RspExceptionBody,
]


def fields(of: Descriptor) -> Iterator[FieldDescriptor]:
    """Yield the fields of a message, and of the messages in it whose fields have entries."""
    for field in of.fields:
        yield field
        if field.message_type is not None and field_of(of.name, field.name) is None:
            yield from fields(field.message_type)


def path_of(field: FieldDescriptor) -> str:
    """Return the name of a field, with that of its message."""
    assert field.containing_type is not None
    return f"{field.containing_type.name}.{field.name}"


ALL = {path_of(field): field for root in ROOTS for field in fields(root.DESCRIPTOR)}


def may_name_something(field: FieldDescriptor) -> bool:
    if field.message_type is not None:
        return bool(field.is_repeated)
    return field.is_repeated or field.type in (field.TYPE_STRING, field.TYPE_BYTES)


@pytest.mark.parametrize(
    "path", [path for path, it in ALL.items() if may_name_something(it) and path not in ENVELOPES]
)
def test_each_field_that_may_name_something_has_an_entry(path: str) -> None:
    """Add what a new release brings to `FIELDS`."""
    entry = field_of(*path.split("."))
    assert entry is not None
    assert entry.absent
    assert bool(entry.why) == (entry.care is Care.PASSED)


def test_each_entry_is_of_a_field() -> None:
    names = {*ALL, *(path.partition(".")[2] for path in ALL)}
    assert not FIELDS.keys() - names


def test_all_messages_of_clients_and_servers_are_those_of_a_method() -> None:
    """A message that is nobody's would have no test here."""
    known = {field.message_type.name for field in ALL.values() if field.message_type is not None}
    known |= {root.DESCRIPTOR.name for root in ROOTS}
    proofs = {"AuthenticateInfo", "MasterCertificateInfo", "MasterAuthorizedInfo"}
    found = {
        name for file in (broker, master, rpc) for name in file.DESCRIPTOR.message_types_by_name
    }
    assert found - known <= proofs | {"AuthorizedInfo", "TransferedMessage"}


def test_a_group_is_judged_before_its_topics_and_a_list_changed_before_its_stamp() -> None:
    for root in ROOTS:
        cares = [place.care for place in places(root.DESCRIPTOR)]
        assert cares == sorted(cares)
    assert Care.GROUP < Care.JUDGED
    assert Care.BROKERS < Care.STAMP
