"""Makes one answer of those of several processes. With one process it is that process's own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from gateway.console.quantiles import quantile

Row = dict[str, Any]


def added(one: Any, other: Any) -> Any:
    """Return two answers added up: numbers by value, lists by place, mappings by key. Texts are the
    same in both; None adds nothing."""
    if one is None or other is None:
        return other if one is None else one
    if isinstance(one, dict):
        return {key: added(one.get(key), other.get(key)) for key in one | other}
    if isinstance(one, list):
        return [added(*both) for both in zip(one, other, strict=True)]
    return one if isinstance(one, str) else one + other


def rows(groups: Iterable[Iterable[Row]], *keys: str) -> list[Row]:
    """Return the rows of all groups; rows with the same `keys` are added up."""
    found: dict[tuple[Any, ...], Row] = {}
    for group in groups:
        for row in group:
            key = tuple(row[name] for name in keys)
            known = found.get(key)
            found[key] = row if known is None else added(known, row)
    return list(found.values())


def state(answers: Sequence[Row]) -> Row:
    """Return what is so now. A gateway is ready while one of its processes is; a broker is healthy
    if all reach it."""
    drains = [it["drain"] for it in answers if it["drain"] is not None]
    unready = [it["ready"] for it in answers]
    reasons = dict.fromkeys(reason for each in unready for reason in each)
    return {
        "rules": _rules(answers),
        "expired": rows((it["expired"] for it in answers), "rule", "since"),
        "denials": rows((it["denials"] for it in answers), "listener", "rule", "right", "mode"),
        "brokers": _brokers(answers),
        "listeners": rows((it["listeners"] for it in answers), "listener"),
        "drain": total(drains),
        "ready": list(reasons) if all(unready) else [],
        "process": _process([it["process"] for it in answers], is_draining=bool(drains)),
    }


def _rules(answers: Sequence[Row]) -> list[Row]:
    """Add up each rule's figures. Its fullest limit is the fullest that any process reports."""
    fullest: dict[tuple[str, str, str], tuple[float, str]] = {}
    for row in (row for it in answers for row in it["rules"]):
        key = row["rule"], row["what"], row["mode"]
        fullest[key] = max(fullest.get(key, (0.0, "")), (row["fill"], row["fullest"]))
    found = rows((it["rules"] for it in answers), "rule", "what", "mode")
    for row in found:
        row["fill"], row["fullest"] = fullest[row["rule"], row["what"], row["mode"]]
    return found


def second(answers: Sequence[Row], shown: int) -> Row | None:
    """Return the rates of one second; None if no process has any yet. `shown`: rows of each table.

    Each process tells its busiest, so of several a row may lack the share of a process in which it
    is among the quiet ones.
    """
    found = [it for it in answers if it]
    if not found:
        return None
    return {
        "now": total([it["now"] for it in found]),
        "tenants": _busiest(rows((it["tenants"] for it in found), "cluster", "tenant"), shown),
        "topics": _busiest(
            rows((it["topics"] for it in found), "cluster", "tenant", "topic"), shown
        ),
        "held": sorted(
            rows((it["held"] for it in found), "topic", "tenant", "direction", "rule"),
            key=lambda it: (-it["wait_seconds"], -it["bytes"]),
        )[:shown],
    }


def total(answers: Sequence[Any]) -> Any:
    """Return all answers added up; None if there are none."""
    found = None
    for it in answers:
        found = added(found, it)
    return found


def _busiest(found: list[Row], shown: int) -> list[Row]:
    def order(row: Row) -> tuple[float, int, int]:
        size = row["to_broker"]["bytes"] + row["to_client"]["bytes"]
        return size, row["held_bytes"], row["producers"] + row["consumers"]

    return sorted(found, key=order, reverse=True)[:shown]


def _brokers(answers: Sequence[Row]) -> list[Row]:
    found: dict[tuple[str, str], Row] = {}
    for row in (row for it in answers for row in it["brokers"]):
        known = found.setdefault((row["cluster"], row["broker"]), dict(row))
        known["healthy"] = known["healthy"] and row["healthy"]
    return list(found.values())


def _process(answers: Sequence[Row], *, is_draining: bool) -> Row:
    """Return the processes as one. Each has its own bound of descriptors: the one nearest to it
    counts."""
    delays = total([it["delays"] for it in answers]) or []

    def used(process: Row) -> float:
        return (process["descriptors"] or 0) / (process["descriptor_limit"] or 1e9)

    nearest = max(answers, key=used, default={"descriptors": None, "descriptor_limit": None})
    return {
        "processes": len(answers),
        "loop_delay_p99": quantile(delays, 0.99),
        "buffered_bytes": sum(it["buffered_bytes"] for it in answers),
        "descriptors": nearest["descriptors"],
        "descriptor_limit": nearest["descriptor_limit"],
        "draining": is_draining,
    }
