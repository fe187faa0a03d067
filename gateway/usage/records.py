"""The records in files: `Usage` for each key and interval, and `Event` for each single event.

Both kinds of records have a version. Readers must accept unknown fields. The meaning of a field
changes only if `VERSION` changes. `docs/usage.schema.json` is generated from these classes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

import msgspec
from msgspec import Meta

from gateway.telemetry.latency import BOUNDS

if TYPE_CHECKING:
    from gateway.usage.interval import Key, Sums
    from gateway.usage.latency import Counted

VERSION = 1
"""The version of the schema."""

Count = Annotated[int, Meta(ge=0)]
Operation = Literal["send", "deliver", "connect", "latency"]
What = Literal["connect", "send", "own", "lookup", "first_message"]


class Identity(msgspec.Struct, omit_defaults=True, kw_only=True):
    """The fields that identify a record. Gaps in `seq` show that records were lost."""

    v: Annotated[int, Meta(description="Version of the schema.")]
    gw: Annotated[str, Meta(description="Name of the gateway; of one of its workers.")]
    boot: Annotated[str, Meta(description="Of the process; another one after each start.")]
    seq: Annotated[
        int,
        Meta(ge=1, description="Number of the record in its stream since the start, without gaps."),
    ]


class Wait(msgspec.Struct):
    """How often, and for how long in all, something waited for the allowance of a rule."""

    rule: str
    count: Count
    ms: Count


class Usage(Identity, omit_defaults=True, kw_only=True):
    """What one key used in one interval. Fields that are left out are null, 0 or empty."""

    start_ms: Annotated[
        int, Meta(description="Begin of the interval, in milliseconds since 1970 UTC.")
    ]
    dur_ms: Annotated[int, Meta(description="Length of the interval in milliseconds.")]
    op: Annotated[
        Operation,
        Meta(
            description="What was done: messages sent by producers, delivered to consumers, "
            "connections held open; or how long clients waited (latency)."
        ),
    ]
    proto: str | None = None
    listener: str | None = None
    cluster: str | None = None
    tenant: str | None = None
    namespace: Annotated[str | None, Meta(description="With its tenant: acme/web.")] = None
    topic: Annotated[
        str | None, Meta(description="Whole name, without the number of a partition.")
    ] = None
    partition: Annotated[str | None, Meta(description="Whole name with that number.")] = None
    subscription: str | None = None
    principal: str | None = None
    auth_method: str | None = None
    client_net: Annotated[
        str | None, Meta(description="Network of the client, or its address if so configured.")
    ] = None
    client_lib: Annotated[str | None, Meta(description="As the client states it.")] = None
    client_id: Annotated[
        str | None,
        Meta(description="The name that a client of Kafka gives itself, with usage.client_ids."),
    ] = None
    msgs: Annotated[
        int,
        Meta(
            ge=0,
            description="Messages that the broker has confirmed, or that consumers got; bills are "
            "on these. Each message of a batch counts.",
        ),
    ] = 0
    entries: Annotated[int, Meta(ge=0, description="The same in frames; a batch is one.")] = 0
    bytes_wire: Annotated[int, Meta(ge=0, description="The same in bytes of these frames.")] = 0
    sent_msgs: Annotated[
        int,
        Meta(ge=0, description="Of sends: messages that passed on; limits are on these."),
    ] = 0
    sent_bytes: Annotated[int, Meta(ge=0, description="The same in bytes.")] = 0
    peak_msgs_1s: Annotated[
        int, Meta(ge=0, description="Most messages that passed in one second.")
    ] = 0
    peak_bytes_1s: Annotated[int, Meta(ge=0, description="Most bytes in one second.")] = 0
    refused: Annotated[
        int, Meta(ge=0, description="Entries that the gateway refused, as a rule says.")
    ] = 0
    errors: Annotated[
        int,
        Meta(ge=0, description="Of these entries: those that the broker answered with an error."),
    ] = 0
    throttle_count: Annotated[int, Meta(ge=0, description="Waits for rules.")] = 0
    throttle_ms: Annotated[int, Meta(ge=0, description="Milliseconds of these waits.")] = 0
    throttles: Annotated[list[Wait], Meta(description="The same by rule, longest first.")] = []
    held_bytes_max: Annotated[
        int, Meta(ge=0, description="Most bytes that waited, of looks once a second.")
    ] = 0
    clients: Annotated[
        int,
        Meta(
            ge=0,
            description="Producers or consumers that were used; of op connect the most connections "
            "at a time.",
        ),
    ] = 0
    open_ms: Annotated[
        int,
        Meta(ge=0, description="Of op connect: milliseconds of open connections, summed up."),
    ] = 0

    lat_what: Annotated[
        What | None,
        Meta(
            description="Of op latency: for what clients waited. own: the gateway's own part of "
            "sends."
        ),
    ] = None
    lat_bucket: Annotated[
        list[int],
        Meta(
            description="Durations by bucket, the last of those above all bounds: "
            + ", ".join(f"{bound:g}" for bound in BOUNDS)
            + " seconds."
        ),
    ] = []
    lat_count: Annotated[int, Meta(ge=0, description="All durations.")] = 0
    lat_sum_us: Annotated[int, Meta(ge=0, description="Their sum in microseconds.")] = 0


EventKind = Literal["connected", "ended", "unauthenticated", "denied", "suppressed"]


class Event(Identity, omit_defaults=True, kw_only=True):
    """One event. Fields that are left out are null."""

    time_ms: Annotated[int, Meta(description="Milliseconds since 1970 UTC.")]
    event: Annotated[
        EventKind,
        Meta(
            description="A connection was opened, or has ended; its client was not authenticated; "
            "a right was denied; or there were more events than are written."
        ),
    ]
    listener: str | None = None
    connection: Annotated[
        int | None, Meta(description="Number of the connection in its process, as in the log.")
    ] = None
    proto: str | None = None
    principal: str | None = None
    auth_method: str | None = None
    client_net: str | None = None
    client_lib: str | None = None
    client_id: Annotated[
        str | None,
        Meta(description="The name that a client of Kafka gives itself."),
    ] = None
    reason: Annotated[str | None, Meta(description="Why a connection ended.")] = None
    open_ms: Annotated[int | None, Meta(description="For how long it was there.")] = None
    right: Annotated[str | None, Meta(description="The right that was denied.")] = None
    tenant: str | None = None
    namespace: str | None = None
    topic: str | None = None
    rule: Annotated[
        str | None, Meta(description="The rule that denied it; null: none allowed it.")
    ] = None
    shadow: Annotated[bool, Meta(description="It would have been denied.")] = False
    number: Annotated[int | None, Meta(description="Of suppressed: how many events.")] = None


STREAMS: dict[str, type[Usage | Event]] = {"usage": Usage, "events": Event}
"""The kinds of records, by the name of their stream, which is the folder of their files."""


class Span(NamedTuple):
    """An interval of one process. The fields are those of `Usage` with the same names."""

    gw: str
    boot: str
    start_ms: int
    dur_ms: int


def usage_of(key: Key, sums: Sums, span: Span, seq: int) -> Usage:
    """Return the usage record of one key. `sums`: what the key used in the interval `span`. `seq`:
    the record's number."""
    topic = key.topic
    waits = sorted(sums.waits.items(), key=lambda item: (-item[1][1], item[0]))
    throttles = [Wait(rule, times, round(s * 1000)) for rule, (times, s) in waits if times]
    operation: Operation = key.operation  # type: ignore[assignment]
    return Usage(
        v=VERSION,
        gw=span.gw,
        boot=span.boot,
        seq=seq,
        start_ms=span.start_ms,
        dur_ms=span.dur_ms,
        op=operation,
        proto=key.protocol,
        listener=key.listener,
        cluster=key.cluster,
        tenant=None if topic is None else topic.tenant,
        namespace=None if topic is None else topic.namespace or None,
        topic=None if topic is None else topic.whole,
        partition=None if topic is None else topic.partition,
        subscription=key.subscription,
        principal=key.principal,
        auth_method=key.method,
        client_net=key.network,
        client_lib=key.library,
        client_id=key.client_id,
        msgs=sums.messages,
        entries=sums.frames,
        bytes_wire=sums.bytes,
        sent_msgs=sums.sent_messages if key.operation == "send" else 0,
        sent_bytes=sums.sent_bytes if key.operation == "send" else 0,
        peak_msgs_1s=sums.peak_messages,
        peak_bytes_1s=sums.peak_bytes,
        refused=sums.refused,
        errors=sums.errors,
        throttle_count=sum(wait.count for wait in throttles),
        throttle_ms=sum(wait.ms for wait in throttles),
        throttles=throttles,
        held_bytes_max=sums.held,
        clients=sums.open,
        open_ms=sums.milliseconds,
    )


def latency_of(counted: Counted, span: Span, seq: int) -> Usage:
    """Return the usage record of the durations that a histogram counted in the interval `span`.
    `seq`: the record's number."""
    what: What = counted.what  # type: ignore[assignment]
    return Usage(
        v=VERSION,
        gw=span.gw,
        boot=span.boot,
        seq=seq,
        start_ms=span.start_ms,
        dur_ms=span.dur_ms,
        op="latency",
        listener=counted.listener,
        tenant=counted.tenant,
        lat_what=what,
        lat_bucket=counted.counts,
        lat_count=sum(counted.counts),
        lat_sum_us=max(0, round(counted.seconds * 1e6)),
    )


def schemas() -> dict[str, object]:
    """Return one JSON Schema for both kinds of records."""
    (usage, event), components = msgspec.json.schema_components([Usage, Event])
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"Records of the broker gateway, version {VERSION}",
        "anyOf": [usage, event],
        "$defs": components,
    }
