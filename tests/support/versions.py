"""Cases by version of an API of Kafka: those at the ends run in the tier `test`, the rest in `all`.

A reader or a handler changes with a version in few ways: at the first and the last version that
the tables have, and at the first flexible one (KIP-482), which has compact lengths and tagged
fields.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from gateway.wire.kafka.schema import Schema, api

REST = pytest.mark.tier("all")


def is_at_an_end(schema: Schema, version: int) -> bool:
    """Return whether a version is the first, the last, or the first flexible one."""
    return version in {schema.first, schema.last, schema.flexible}


def case(schema: Schema, version: int, *values: object, id: str | None = None) -> Any:
    """Return the parameters `values` of a case of this version."""
    marks = () if is_at_an_end(schema, version) else REST
    return pytest.param(*values, marks=marks, id=id)


def versions(schema: Schema, first: int = 0) -> list[Any]:
    """Return the case of each version, from `first` on, as one parameter."""
    numbers = range(max(first, schema.first), schema.last + 1)
    return [case(schema, it, it, id=str(it)) for it in numbers]


def by_version(cases: Iterable[tuple[Any, ...]]) -> list[Any]:
    """Return cases that begin with the key of an API and a version."""
    return [case(_request(it[0]), it[1], *it) for it in cases]


def _request(key: int) -> Schema:
    found = api(key)
    assert found is not None
    return found.request
