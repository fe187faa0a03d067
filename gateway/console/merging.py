"""Merges the answers of several processes into one. The answer of a single process stays as it
is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from gateway.console.quantiles import quantile

Row = dict[str, Any]


def added(one: Any, other: Any) -> Any:
    """Return the sum of the answers of two processes: numbers are added, lists item by item,
    mappings key by key. A text is the same in both; None counts as nothing."""
    if one is None or other is None:
        return other if one is None else one
    if isinstance(one, dict):
        return {key: added(one.get(key), other.get(key)) for key in one | other}
    if isinstance(one, list):
        return [added(*both) for both in zip(one, other, strict=True)]
    return one if isinstance(one, str) else one + other


def rows(groups: Iterable[Iterable[Row]], *keys: str) -> list[Row]:
    """Return the rows of all processes. Rows with the same values of `keys` are added up into one
    row."""
    by_key: dict[tuple[Any, ...], Row] = {}
    for group in groups:
        for row in group:
            key = tuple(row[name] for name in keys)
            known = by_key.get(key)
            by_key[key] = row if known is None else added(known, row)
    return list(by_key.values())


def state(answers: Sequence[Row]) -> Row:
    """Return the current state of the gateway, without rates, from the answers of its processes.
    The gateway is ready while one process is ready. A broker is healthy if all processes reach
    it."""
    drains = [answer["drain"] for answer in answers if answer["drain"] is not None]
    unready = [answer["ready"] for answer in answers]
    reasons = dict.fromkeys(reason for each in unready for reason in each)
    return {
        "rules": _rules(answers),
        "expired": rows((answer["expired"] for answer in answers), "rule", "since"),
        "denials": rows(
            (answer["denials"] for answer in answers), "listener", "rule", "right", "mode"
        ),
        "brokers": _brokers(answers),
        "listeners": rows((answer["listeners"] for answer in answers), "listener"),
        "drain": total(drains),
        "ready": list(reasons) if all(unready) else [],
        "process": _process([answer["process"] for answer in answers], is_draining=bool(drains)),
    }


def _rules(answers: Sequence[Row]) -> list[Row]:
    """Add up each rule's figures. Its fullest limit is the fullest that any process reports."""
    fullest: dict[tuple[str, str, str], tuple[float, str]] = {}
    for row in (row for answer in answers for row in answer["rules"]):
        key = row["rule"], row["what"], row["mode"]
        fullest[key] = max(fullest.get(key, (0.0, "")), (row["fill"], row["fullest"]))
    merged = rows((answer["rules"] for answer in answers), "rule", "what", "mode")
    for row in merged:
        row["fill"], row["fullest"] = fullest[row["rule"], row["what"], row["mode"]]
    return merged


def second(answers: Sequence[Row], shown: int) -> Row | None:
    """Return the gateway's rates of one second, from the answers of its processes; None if no
    process has any yet. `shown`: number of rows in each table.

    Each process reports only its busiest rows. So the rates of a row do not include a process in
    which the row is not among the busiest.
    """
    given = [answer for answer in answers if answer]
    if not given:
        return None
    return {
        "now": total([answer["now"] for answer in given]),
        "tenants": _busiest(
            rows((answer["tenants"] for answer in given), "cluster", "tenant"), shown
        ),
        "topics": _busiest(
            rows((answer["topics"] for answer in given), "cluster", "tenant", "topic"), shown
        ),
        "held": sorted(
            rows((answer["held"] for answer in given), "topic", "tenant", "direction", "rule"),
            key=lambda row: (-row["wait_seconds"], -row["bytes"]),
        )[:shown],
    }


def total(answers: Sequence[Any]) -> Any:
    """Return the sum of all answers (see `added`); None if there are no answers."""
    sums = None
    for answer in answers:
        sums = added(sums, answer)
    return sums


def _busiest(merged: list[Row], shown: int) -> list[Row]:
    def order(row: Row) -> tuple[float, int, int]:
        size = row["to_broker"]["bytes"] + row["to_client"]["bytes"]
        return size, row["held_bytes"], row["producers"] + row["consumers"]

    return sorted(merged, key=order, reverse=True)[:shown]


def _brokers(answers: Sequence[Row]) -> list[Row]:
    brokers: dict[tuple[str, str], Row] = {}
    for row in (row for answer in answers for row in answer["brokers"]):
        known = brokers.setdefault((row["cluster"], row["broker"]), dict(row))
        known["healthy"] = known["healthy"] and row["healthy"]
    return list(brokers.values())


def _process(answers: Sequence[Row], *, is_draining: bool) -> Row:
    """Return the processes as one. Each has its own bound of descriptors: the one nearest to it
    counts."""
    delays = total([process["delays"] for process in answers]) or []

    def used(process: Row) -> float:
        return (process["descriptors"] or 0) / (process["descriptor_limit"] or 1e9)

    nearest = max(answers, key=used, default={"descriptors": None, "descriptor_limit": None})
    return {
        "processes": len(answers),
        "loop_delay_p99": quantile(delays, 0.99),
        "buffered_bytes": sum(process["buffered_bytes"] for process in answers),
        "descriptors": nearest["descriptors"],
        "descriptor_limit": nearest["descriptor_limit"],
        "draining": is_draining,
    }
