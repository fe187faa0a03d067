"""Rules, and what passes them from process to process."""

from __future__ import annotations

from io import BytesIO
from typing import Any

from gateway.policy.rules import Rule
from gateway.reload import passing


def rule(id: str, rate: str = "100/s", **others: Any) -> Rule:
    limit = {"publish": {"messages": rate}}
    return Rule.model_validate({"id": id, "limit": limit} | others)


def written(*rules: Rule) -> bytes:
    """As the reader writes them."""
    to = BytesIO()
    passing.write(rules, to)
    return to.getvalue()
