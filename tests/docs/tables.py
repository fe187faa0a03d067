"""`python -m tests.docs.tables`: writes docs/pipeline-tables.md from the schema of the pipeline.

A column that is named as a field of a record means the same, so what is said of the field is said
of the column; what only tables have is said here. A test holds the file to the code.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import msgspec

from gateway.pipeline.schema import RECORDS, TABLES, WATCHED

PAGE = Path(__file__).resolve().parents[2] / "docs" / "pipeline-tables.md"

ROWS = {
    "usage": "what one key used in one interval; [usage.md](usage.md) says more",
    "events": "a single event of a client; [usage.md](usage.md#events) says more",
    "stored": "what a cluster stores of one topic, at the time of a snapshot",
    "quarantine": "a line that is no record. Its day is that of the folder of its file",
    "files": "a file that was taken. It has no days",
    "hourly": "what one key used in an hour",
    "daily": "what one key used in a day",
    "latency_hourly": "how long clients of a tenant waited in an hour",
    "latency_daily": "how long clients of a tenant waited in a day",
    "completeness": "the numbers of records of a gateway's process on a day",
    "stored_daily": "what was stored of a topic on a day",
    "neighbours": "an incident in which one tenant grew and others suffered",
    "abuse": "an attack on credentials, or what only looks like one",
    "alerts": "an incident of neighbours that was told; in the folder `tables/watch`",
    "watched_runs": "what a batch of new files gave; in the folder `tables/watch`",
}
"""By table: what a row is."""

INTERNAL = {*WATCHED} - {*ROWS}
"""What one batch of files leaves for the next."""

PLAIN = {
    "proto": "Protocol, as `pulsar`.",
    "listener": "Name of the gateway's listener.",
    "cluster": "Name of the brokers' cluster.",
    "tenant": "Tenant of the topic.",
    "subscription": "Name of the subscription; of deliveries alone.",
    "principal": "Who the client is, as the gateway knows it.",
    "auth_method": "By which the client was authenticated.",
    "source": "`zookeeper` or `admin`.",
    "cursors": "Subscriptions, with their positions and what they hold.",
    "day": "`YYYY-MM-DD` in UTC, by the record's own time.",
    "hour_ms": "Begin of the hour, in milliseconds since 1970 UTC.",
    "networks": "Different client networks.",
    "records": "Records that are summed up in this row.",
    "p50_s": "Half of the durations are below so many seconds.",
    "p95_s": "95 % of the durations are below so many seconds.",
    "p99_s": "99 % of the durations are below so many seconds.",
}
"""By column: what it means in all tables that have it, unless the next table says otherwise."""

_INCIDENT = {
    "culprit": "The tenant that grew.",
    "start_ms": "Begin, in milliseconds since 1970 UTC.",
    "end_ms": "End, exclusive.",
    "slots": "Slots in which it grew while others suffered.",
    "victims": "Tenants that suffered.",
    "share": "The culprit's mean share of the traffic, from 0 to 1.",
    "z": "The most standard deviations above what is usual for it.",
    "growth": "The mean factor of its usual rate.",
    "slower": "The highest factor of a victim's latency; null if none is known.",
    "held_ms": "Milliseconds for which rules held the victims.",
    "day": "Of the start.",
}

OWN: Mapping[str, Mapping[str, str]] = {
    "quarantine": {
        "stream": "Kind of the record that it should be: `usage`, `events` or `stored`.",
        "path": "Of its file.",
        "reason": "Why it is no record.",
        "line": "Its first 2,000 characters.",
        "day": "`YYYY-MM-DD`, of the folder of its file.",
    },
    "files": {
        "stream": "Kind of its records: `usage`, `events` or `stored`.",
        "path": "Where it is.",
        "size": "Bytes of the file.",
        "records": "Records that were read.",
        "quarantined": "Lines that are no records.",
        "missing": "Numbers of its name that it has no line for.",
    },
    "completeness": {
        "stream": "Kind of the records: `usage` or `events`.",
        "first_seq": "The lowest number.",
        "last_seq": "The highest number; with `first_seq` and `records` it says what is missing.",
        "records": "Records that there are.",
    },
    "stored_daily": {
        "byte_hours": "Bytes times hours; 10^9 of them are a GB-hour.",
        "bytes_most": "The most bytes of a snapshot.",
        "bytes_last": "Bytes of the last snapshot.",
    },
    "neighbours": _INCIDENT,
    "alerts": {
        **_INCIDENT,
        "told_ms": "When it was told first, in milliseconds since 1970 UTC.",
        "first_run": "The batch that it was told after first.",
        "last_run": "The batch that it was told after in this form.",
    },
    "watched_runs": {
        "run": "Number of the batch.",
        "batch": "Number that Spark gave it.",
        "at_ms": "When it was taken, in milliseconds since 1970 UTC.",
        "records": "Records that were judged.",
        "late": "Records that came too late to be judged.",
        "repeated": "Records that had come before.",
        "bad": "Lines that are no records.",
        "alerts": "Alerts that are new, or that grew.",
        "newest_ms": "End of the newest record so far.",
        "slot_ms": "Length of the slots that were compared.",
        "day": "Of the batch.",
    },
    "abuse": {
        "kind": "What was seen: `spraying`, `guessing`, `guessed`, `shared_credential` or "
        "`expired_storm`.",
        "principal": "Whose credential it is; null if there are several, or none.",
        "network": "From where it came; null if from several.",
        "start_ms": "The first event, in milliseconds since 1970 UTC.",
        "end_ms": "The last event.",
        "failures": "Authentications that failed.",
        "principals": "Different principals that were tried.",
        "networks": "Different networks.",
        "usual": "Usual number of networks of the principal in a day; null if not known.",
        "is_attack": "False: a mistake.",
        "day": "Of the start.",
    },
}
"""By table: what its columns mean that no record has, or that mean something else here."""

HEAD = """\
# Tables of the pipeline

Written by `make metrics` from the code. [The pipeline](pipeline.md#tables) says how tables are kept
and read. Numbers that are nobody's are 0, and texts null. Sums and peaks have the names of the
fields of records that they are made of.
"""


def written() -> str:
    """Return the page of now."""
    return HEAD + "".join(_section(name) for name in TABLES if name not in INTERNAL)


def _section(table: str) -> str:
    lines = [
        f"\n## {table}\n",
        f"A row is {ROWS[table]}.\n",
        "| Column | Type | |",
        "|---|---|---|",
    ]
    lines += [
        f"| `{field.name}` | {_kind(field.dataType.simpleString())} "
        f"| {meaning(table, field.name)} |"
        for field in TABLES[table].fields
    ]
    return "\n".join(lines) + "\n"


def _kind(text: str) -> str:
    """Return a type as it is read best: what is in a list of structures, its records say."""
    return "array of structures" if text.startswith("array<struct") else text


def meaning(table: str, column: str) -> str:
    """Return what a column means. Raises `KeyError` if nothing says that."""
    own = OWN.get(table, {})
    if column in own:
        return own[column]
    for stream in sorted(RECORDS, key=lambda stream: stream != table):
        if column in (described := dict(_described(stream))):
            return described[column]
    return PLAIN[column]


def _described(stream: str) -> Iterator[tuple[str, str]]:
    """Yield the fields of a record that are described, with the description."""
    _, defined = msgspec.json.schema_components([RECORDS[stream].record])
    (schema,) = (it for name, it in defined.items() if name == RECORDS[stream].record.__name__)
    for name, it in cast("dict[str, Any]", schema)["properties"].items():
        if "description" in it:
            yield name, it["description"]


if __name__ == "__main__":
    PAGE.write_text(written(), encoding="utf-8")
    print("written: docs/pipeline-tables.md")
