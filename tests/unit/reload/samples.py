"""Sample rules, and their pickled form."""

from __future__ import annotations

from io import BytesIO
from typing import Any

from gateway.policy.rules import Rule
from gateway.reload import reader


def rule(id: str, rate: str = "100/s", **others: Any) -> Rule:
    limit = {"publish": {"messages": rate}}
    return Rule.model_validate({"id": id, "limit": limit} | others)


def written(*rules: Rule) -> bytes:
    """Return rules as the reader writes them."""
    to = BytesIO()
    reader.write(rules, to)
    return to.getvalue()
