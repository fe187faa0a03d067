"""Millions of plausible usage records: seeded, and written as gateways write them.

Made of texts that are put together, because encoding records one by one would take longer than all
jobs. Each file comes from its own seed, so any number of processes write the same.
"""

from __future__ import annotations

import gzip
import multiprocessing
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import accumulate, pairwise
from pathlib import Path
from random import Random
from typing import NamedTuple

from gateway.telemetry.latency import BOUNDS

TENANTS, TOPICS, PRINCIPALS, GATEWAYS = 40, 10_000, 2_000, 4

OF_TENANT = PRINCIPALS // TENANTS
"""Principals of a tenant."""

FILE = 25_000
"""Records of a file. What a gateway writes in a minute, with thousands of keys in each interval."""

INTERVAL_MS = 10_000

LEVEL = 6
"""Of compression, as gateways have it."""

BEGIN = date(2026, 10, 1)
"""The first day of the records: of a month that is over."""

OPERATIONS = {"send": 45, "deliver": 45, "connect": 4, "latency": 6}
"""And their part of the records, in percent."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is made. `days`: over which the records are spread. `is_skewed`: one topic has half of
    all records, or else the first of 10,000 has a tenth."""

    number: int
    days: int
    is_skewed: bool = False
    seed: int = 1

    @property
    def files(self) -> int:
        return max(GATEWAYS, -(-self.number // FILE))


class Written(NamedTuple):
    """Files, and their bytes as they are and unpacked."""

    files: int
    packed: int
    plain: int


def write(plan: Plan, folder: Path, processes: int) -> Written:
    """Write all records below `folder`/usage; return what was written."""
    work = [(plan, folder, number) for number in range(plan.files)]
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        sizes = pool.starmap(_write_file, work, chunksize=4)
    packed, plain = (sum(column) for column in zip(*sizes, strict=True))
    return Written(plan.files, packed, plain)


class _World(NamedTuple):
    topics: list[tuple[int, str]]  # tenant, and text of a record
    weights: list[float]


def _world(plan: Plan) -> _World:
    topics = []
    for number in range(TOPICS):
        tenant = number % TENANTS
        namespace = f"tenant-{tenant:02}/ns-{number // TENANTS % 5}"
        text = (
            f'"tenant":"tenant-{tenant:02}","namespace":"{namespace}",'
            f'"topic":"persistent://{namespace}/orders-{number:05}"'
        )
        topics.append((tenant, text))
    weights = [1 / (rank + 1) for rank in range(TOPICS)]
    if plan.is_skewed:
        weights[0] = sum(weights[1:])
    return _World(topics, list(accumulate(weights)))


def _write_file(plan: Plan, folder: Path, number: int) -> tuple[int, int]:
    """Write a file; return its bytes as it is and unpacked. Files of a gateway follow each other,
    in numbers as in time."""
    rng, world = Random(f"{plan.seed} {number}"), _world(plan)
    ends = [plan.number * it // plan.files for it in range(plan.files + 1)]
    count = list(pairwise(ends))[number]
    gw, turn = f"edge-{number % GATEWAYS}", number // GATEWAYS
    first = 1 + sum(ends[it + 1] - ends[it] for it in range(number % GATEWAYS, number, GATEWAYS))
    turns = -(-plan.files // GATEWAYS)
    begin_ms = int(datetime.combine(BEGIN, datetime.min.time(), UTC).timestamp()) * 1000
    span_ms = plan.days * 86_400_000 // turns
    size = count[1] - count[0]
    lines = []
    for at, (topic, operation) in enumerate(_drawn(rng, world, size)):
        time = begin_ms + turn * span_ms + span_ms * at // size
        head = (
            f'{{"v":1,"gw":"{gw}","boot":"b{plan.seed:07}","seq":{first + at},'
            f'"start_ms":{time - time % INTERVAL_MS},"dur_ms":{INTERVAL_MS},'
        )
        lines.append(head + _rest(rng, world.topics[topic], topic, operation))
    data = "".join(lines).encode()
    packed = gzip.compress(data, LEVEL, mtime=0)
    moment = datetime.fromtimestamp((begin_ms + (turn + 1) * span_ms) / 1000, UTC)
    moment -= timedelta(seconds=1)
    into = folder / "usage" / f"dt={moment:%Y-%m-%d}" / f"hr={moment:%H}"
    into.mkdir(parents=True, exist_ok=True)
    name = f"{gw}-b{plan.seed:07}-{first:012}-{first + size - 1:012}.jsonl.gz"
    (into / name).write_bytes(packed)
    return len(packed), len(data)


def _drawn(rng: Random, world: _World, size: int) -> zip[tuple[int, str]]:
    topics = rng.choices(range(TOPICS), cum_weights=world.weights, k=size)
    operations = rng.choices([*OPERATIONS], [*OPERATIONS.values()], k=size)
    return zip(topics, operations, strict=True)


def _rest(rng: Random, topic: tuple[int, str], number: int, operation: str) -> str:
    """Return what a record has behind its time. Four principals use a topic, the first one all that
    its tenant has."""
    dice = rng.getrandbits(40)
    tenant, named = topic
    some = dice % OF_TENANT if number == 0 else (number + dice % 4) % OF_TENANT
    principal = tenant * OF_TENANT + some
    if operation == "latency":
        return _latency(rng, tenant)
    client = (
        f'"op":"{operation}","proto":"pulsar","listener":"main","cluster":"main",'
        f'"principal":"service-{principal:04}","auth_method":"token",'
        f'"client_net":"10.{tenant}.{principal % 256}.{(dice >> 8) % 4}/24",'
        f'"client_lib":"Pulsar-Java-v4.0.{(dice >> 10) % 3}"'
    )
    if operation == "connect":
        opened = 1 + (dice >> 12) % 8
        return f'{client},"clients":{opened},"open_ms":{opened * INTERVAL_MS}}}\n'
    messages = 1 + (dice >> 12) % 5_000
    frames = 1 + messages // 10
    size = messages * (200 + (dice >> 28) % 1_000)
    amounts = (
        f'"msgs":{messages},"entries":{frames},"bytes_wire":{size},'
        f'"peak_msgs_1s":{1 + messages // 5},"peak_bytes_1s":{size // 5},"clients":2'
    )
    if operation == "send":
        held = f',"throttle_count":{frames},"throttle_ms":{frames * 3}' if dice % 50 == 0 else ""
        more = f'"sent_msgs":{messages},"sent_bytes":{size}'
        return f"{client},{named},{amounts},{more}{held}}}\n"
    return f'{client},{named},"subscription":"group-{(dice >> 20) % 2}",{amounts}}}\n'


def _latency(rng: Random, tenant: int) -> str:
    middle, count = rng.randrange(6, 12), 1 + rng.getrandbits(9)
    buckets = [0] * (len(BOUNDS) + 1)
    for at, part in ((-1, 4), (0, 2), (1, 8)):
        buckets[middle + at] = count // part
    total = sum(buckets)
    return (
        f'"op":"latency","listener":"main","tenant":"tenant-{tenant:02}","lat_what":"send",'
        f'"lat_bucket":{str(buckets).replace(" ", "")},"lat_count":{total},'
        f'"lat_sum_us":{round(total * BOUNDS[middle] * 1e6)}}}\n'
    )
