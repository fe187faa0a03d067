"""`gateway pipeline JOB`: runs a job on a folder of tables.

Also an entry point of `spark-submit`: `spark-submit .../gateway/pipeline/command.py JOB ...`.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from gateway.command_line import Parser
from gateway.errors import BAD_CONFIGURATION, ConfigurationError
from gateway.pipeline import arguments
from gateway.pipeline.ledgers import options as snapshot_options
from gateway.rules.options import RECOMMENDED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pyspark.sql import DataFrame, Row, SparkSession

    from gateway.pipeline.billing.closing import Closed
    from gateway.pipeline.billing.months import Month
    from gateway.pipeline.billing.prices import RateCard
    from gateway.pipeline.chargeback import MonthlyUse
    from gateway.pipeline.forecasting import Forecast
    from gateway.pipeline.ingest import Taken
    from gateway.pipeline.lake import Lake, State
    from gateway.pipeline.neighbours import Thresholds

    Job = Callable[[SparkSession, argparse.Namespace], int]
    _Add = Callable[[str, Job, str], argparse.ArgumentParser]


INVOICES = Path("invoices")
"""Where bills and closed months are."""


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the jobs to a parser."""
    jobs = parser.add_subparsers(required=True, metavar="JOB")

    def add(name: str, job: Job, help: str) -> argparse.ArgumentParser:
        subparser = jobs.add_parser(name, help=help, description=help)
        subparser.add_argument("tables", help="folder of the tables; any URL that Spark reads")
        subparser.set_defaults(command=run, job=job, job_name=name)
        _add_session(subparser)
        return subparser

    taken = add("ingest", _ingest, "take new files of records into the tables")
    _add_source(taken)
    text = "files of one commit, which writes its days anew (20000)"
    taken.add_argument("--files", type=arguments.files, metavar="N", help=text)
    add("rollup", _rollup, "sum up the days whose records have changed, by hour and by day")
    kept = add("store", _store, "sum up what clusters store, from snapshots")
    kept.add_argument("source", help="folder of the snapshots")
    unread = add("subscriptions", _subscriptions, "list abandoned subscriptions")
    unread.add_argument("--days", type=float, default=7.0, help="unread for (%(default)s)")
    billed = add("chargeback", _chargeback, "write the invoices of a month")
    billed.add_argument("--prices", type=Path, required=True, help="rate card, in YAML")
    billed.add_argument("--month", help="2026-11 (the month before this one)")
    billed.add_argument("--out", type=Path, default=INVOICES, help="(%(default)s)")
    billed.add_argument("--close", action="store_true", help="the month changes no more")
    text = "close a month of which there are no records, as nothing was used"
    billed.add_argument("--empty", action="store_true", help=text)
    text = "close a month of which up to N records are missing (%(default)s)"
    billed.add_argument("--accept-missing", type=int, default=0, metavar="N", help=text)
    text = "credit a closed month and bill it by other prices; credit notes have the reason"
    billed.add_argument("--correct", type=arguments.reason, metavar="REASON", help=text)
    text = "in CSV files, an apostrophe stands before what spreadsheets take for formulas"
    billed.add_argument("--for-spreadsheets", action="store_true", help=text)
    advised = add("recommend", _recommend, "recommend limits from what tenants used")
    advised.add_argument(
        "--rules",
        type=Path,
        default=RECOMMENDED,
        help="file to write (%(default)s)",
    )
    advised.add_argument("--days", type=int, default=14, help="days to look at (%(default)s)")
    advised.add_argument(
        "--headroom", type=float, default=1.5, help="limits are this many times use (%(default)s)"
    )
    tried = add("backtest", _backtest, "say what limits would have held in the past weeks")
    tried.add_argument("--rules", type=Path, nargs="+", default=[RECOMMENDED], help="files")
    tried.add_argument("--days", type=int, default=14, help="days to look at (%(default)s)")
    ahead = add("forecast", _forecast, "say when limits, steps of prices and disks are reached")
    ahead.add_argument("--rules", type=Path, nargs="*", default=[], help="files of limits")
    ahead.add_argument("--prices", type=Path, help="rate card, in YAML")
    ahead.add_argument("--disk", action="append", default=[], metavar="CLUSTER=SIZE")
    _add_findings(add)
    _add_keeping(add)
    _add_without_tables(jobs)


def _add_findings(add: _Add) -> None:
    for name, job, help in (
        ("neighbours", _neighbours, "find tenants whose growth others suffer from"),
        ("abuse", _abuse, "find guessed and shared credentials in events"),
    ):
        looked = add(name, job, help)
        looked.add_argument("--days", type=int, default=28, help="days to look at (%(default)s)")
        if job is _neighbours:
            slot = "what is compared; not shorter than intervals of records (%(default)s)"
            looked.add_argument("--slot", type=arguments.slot, default="5m", help=slot)
            _add_watching(looked)
    looked.add_argument("--rules", type=Path, help="file to write, of rules against attackers")
    text = "how long after the last event a rule has an effect (24h)"
    looked.add_argument("--ttl", type=arguments.lifetime, default="24h", metavar="TIME", help=text)
    text = "the rules deny, instead of counting what they would deny"
    looked.add_argument("--enforce", action="store_true", help=text)


def _add_watching(parser: argparse.ArgumentParser) -> None:
    alerts = parser.add_argument_group("alerts as they happen")
    alerts.add_argument(
        "--watch",
        metavar="FOLDER",
        help="the one that usage.folder names: judge files there that no run has taken",
    )
    text = "how far behind the newest record others may come, to be judged (10m)"
    alerts.add_argument("--late", type=arguments.waited, metavar="TIME", help=text)
    text = "go on, and look again this long after the last look began (one look)"
    alerts.add_argument("--every", type=arguments.waited, metavar="TIME", help=text)
    text = "file that alerts are added to, as JSON lines (standard output)"
    alerts.add_argument("--out", type=Path, metavar="FILE", help=text)


def _add_keeping(add: _Add) -> None:
    kept = add("retain", _retain, "let old days of tables go")
    kept.add_argument(
        "--keep", action="append", default=[], metavar="KIND=DAYS", type=arguments.kept
    )
    kept.add_argument("--dry-run", action="store_true", help="only say which days would go")
    text = "the folder of chargeback, which knows what is closed (%(default)s)"
    kept.add_argument("--invoices", type=Path, default=INVOICES, help=text)
    text = "let days go that bills are made of, though their month is not closed"
    kept.add_argument("--even-unbilled", action="store_true", help=text)
    swept = add("compact", _compact, "remove the files of tables that nobody reads any more")
    text = "for how long nobody needed them, 24h at least (%(default)s)"
    swept.add_argument(
        "--unread", type=arguments.milliseconds, default="24h", metavar="TIME", help=text
    )


def _add_without_tables(jobs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the jobs that take no folder of tables."""
    help = "show all jobs on a made-up month; takes some minutes"
    shown = jobs.add_parser("demo", help=help, description=help)
    shown.add_argument("folder", type=Path, nargs="?", default=Path("pipeline-demo"))
    shown.set_defaults(command=run, job=_demo, job_name="demo")
    _add_session(shown)
    help = "write down what a cluster stores, from ZooKeeper or its brokers"
    taken = jobs.add_parser("snapshot", help=help, description=help)
    snapshot_options.add_arguments(taken)
    taken.set_defaults(command=_snapshot)


def _add_source(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "source",
        metavar="FOLDER|URL",
        help="the one that usage.folder names, or the URL of brokers with /tenant/namespace/topic",
    )
    topic = parser.add_argument_group("of a topic")
    topic.add_argument(
        "--stream", choices=["usage", "events"], default="usage", help="what it has (%(default)s)"
    )
    topic.add_argument(
        "--subscription",
        default="gateway-pipeline",
        metavar="NAME",
        help="by which brokers know what was taken (%(default)s)",
    )
    topic.add_argument("--token-file", type=Path, metavar="FILE", help="the token for the brokers")
    topic.add_argument(
        "--ca-file", type=Path, metavar="FILE", help="who signed the brokers' certificates"
    )


def _snapshot(options: argparse.Namespace) -> int:
    try:
        from gateway.pipeline.ledgers import command

        return command.run(options)
    except ModuleNotFoundError as missing:
        raise _explained(missing) from None


def _explained(missing: ModuleNotFoundError) -> ConfigurationError:
    return ConfigurationError(f"{missing.name} is missing; pip install 'broker-gateway[pipeline]'")


def _add_session(parser: argparse.ArgumentParser) -> None:
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--master", help="local[N], spark://HOST:PORT or k8s://... (this machine)")
    where.add_argument("--remote", help="a Spark Connect server: sc://HOST:PORT")
    parser.add_argument("--memory", default=arguments.MEMORY, help="of Spark here (%(default)s)")
    parser.add_argument("--trace", action="store_true", help="show all that Spark says of failures")
    parser.add_argument(
        "--conf",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting of Spark: spark.sql.shuffle.partitions=64; may be repeated",
    )


def run(options: argparse.Namespace) -> int:
    """Run a job as its options say, and return the exit status."""
    from gateway.pipeline import sessions

    settings = dict(map(_setting, options.conf))
    try:
        spark = sessions.session(
            options.job_name,
            master=options.master,
            remote=options.remote,
            memory=options.memory,
            is_traced=options.trace,
            settings=settings,
        )
    except ModuleNotFoundError as missing:
        raise _explained(missing) from None
    with sessions.ended(spark):
        try:
            status: int = options.job(spark, options)
        except sessions.failures() as error:
            if options.trace:
                raise
            _say(f"gateway pipeline {options.job_name}: {sessions.explain(spark, error)}")
            return FAILED
    return status


AHEAD_TOLD_MS = 300_000
"""How far clocks may be apart before it is told: they are kept within seconds of each other."""

FAILED = 1
"""Exit status of a job that did not come to its end."""


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (equals and name.startswith("spark.")):
        # The value may be a secret, so it is not repeated.
        raise ConfigurationError(
            f"--conf {name}: is no setting; spark.sql.shuffle.partitions=64, for example"
        )
    return name, value


def main(words: Sequence[str] | None = None) -> int:
    """Run a job by its command line alone."""
    parser = Parser(prog="gateway pipeline", description=__doc__)
    add_to(parser)
    try:
        options = parser.parse_args(words)
        status: int = options.command(options)
        return status
    except ConfigurationError as error:
        print(error, file=sys.stderr)
        return BAD_CONFIGURATION


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _rest(seconds: float) -> None:
    time.sleep(seconds)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


# -- jobs --------------------------------------------------------------------------------------
# Each imports what it needs when it runs: Spark takes its time.


def _demo(spark: SparkSession, options: argparse.Namespace) -> int:
    from gateway.pipeline.billing.months import Month
    from gateway.pipeline.demo.showing import show

    before = datetime.now(UTC).replace(day=1) - timedelta(days=1)
    month = Month(before.year, before.month)
    show(spark, options.folder, month, _now_ms(), _say)
    return 0


def _ingest(spark: SparkSession, options: argparse.Namespace) -> int:
    from gateway import protocols
    from gateway.pipeline import inbox
    from gateway.pipeline.ingest import FILES_AT_ONCE, ingest, streams
    from gateway.pipeline.lake import Lake

    lake, source, taken = Lake(spark, options.tables), options.source, []
    most = options.files or FILES_AT_ONCE
    is_topic = protocols.plugin_of(source) is not None
    if is_topic:
        _fill_inbox(lake, options)
        source = inbox.folder(lake)
    for stream in streams(spark, source, required=not is_topic):

        def told(batch: Taken, stream: str = stream) -> None:
            _say(f"{stream}: {batch.files} files, {batch.records} records")

        taken += ingest(lake, source, stream, _now_ms(), files_at_once=most, progress=told)
        if is_topic:
            inbox.clear(lake, stream, _now_ms())
    files, read, new, doubled, bad, missing = (
        sum(getattr(it, name) for it in taken)
        for name in ("files", "read", "new", "doubled", "quarantined", "missing")
    )
    days = len({day for it in taken for day in it.days})
    _say(
        f"{files} new files of {days} days: {read:,} lines read; {new:,} new records, "
        f"{doubled:,} doubled, {bad:,} put aside"
    )
    if retired := sum(it.retired for it in taken):
        _say(f"{retired} of them are of days that `retain` let go, whose sums stay as they are")
    if missing:
        _say(f"{missing} records are missing in torn files; see the table `files`")
    ahead_ms, who = max(((it.ahead_ms, it.ahead) for it in taken), default=(0, ""))
    if ahead_ms > AHEAD_TOLD_MS:
        _say(f"the clock of {who!a} is {ahead_ms / 3_600_000:.1f} hours ahead of this machine's")
    return 0


def _fill_inbox(lake: Lake, options: argparse.Namespace) -> None:
    from gateway.pipeline import inbox
    from gateway.usage.command import taken_of_topic, topic_of
    from gateway.verifiers import explained

    _, topic = topic_of(options.source)
    batches = taken_of_topic(
        options.source, options.subscription, options.token_file, options.ca_file
    )

    def told(number: int) -> None:
        _say(f"{topic}: {number} messages")

    try:
        number = inbox.fill(lake, options.stream, topic, batches, _now_ms(), progress=told)
    except ModuleNotFoundError as missing:
        raise explained(missing) from None
    if not number:
        _say(f"{topic}: nothing new")


def _rollup(spark: SparkSession, options: argparse.Namespace) -> int:
    from gateway.pipeline.lake import Lake
    from gateway.pipeline.rollup import rollup

    days = rollup(Lake(spark, options.tables), _now_ms())
    _say(f"{len(days)} days summed up" + (f": {days[0]} to {days[-1]}" if days else ""))
    return 0


def _store(spark: SparkSession, options: argparse.Namespace) -> int:
    from gateway.pipeline.ingest import ingest
    from gateway.pipeline.lake import Lake
    from gateway.pipeline.storage import store

    lake = Lake(spark, options.tables)
    taken = ingest(lake, options.source, "stored", _now_ms())
    days = store(lake, _now_ms())
    files, bad = sum(it.files for it in taken), sum(it.quarantined for it in taken)
    _say(f"{files} new snapshots, {bad} lines put aside; {len(days)} days summed up")
    return 0


def _subscriptions(spark: SparkSession, options: argparse.Namespace) -> int:
    from gateway.pipeline.lake import Lake
    from gateway.pipeline.storage import DAY_MS, abandoned, unlocated, without_ages

    lake = Lake(spark, options.tables)
    found = abandoned(lake, round(options.days * DAY_MS))
    for row in found.limit(SHOWN).collect():
        _print(
            f"{row.cluster}: {row.subscription!a} of {row.topic!a} has {row.backlog_entries} "
            f"unread entries, the oldest for {row.oldest_unread_ms / DAY_MS:.1f} days; "
            f"deleting it frees {row.holds_bytes or 0:,} bytes"
        )
    for cluster in without_ages(lake):
        _say(f"{cluster}: its brokers say no ages; take a snapshot with --zookeeper")
    if lagging := unlocated(lake):
        _say(f"{lagging} positions lag in ZooKeeper; a snapshot with --admin has those of now")
    _say(f"{found.count()} abandoned subscriptions")
    return 0


def _summed_up(lake: Lake) -> State:
    """Sum up what the tables have and no job has summed up, and return them as they are then. So a
    job that reads sums may be run alone, and late records are in what it says."""
    from gateway.pipeline import rollup, storage

    while True:  # again, if another job's commit has won, or records came meanwhile
        state = lake.state()
        if not (rollup.stale(state) or storage.stale(state)):
            return state
        days = {*rollup.rollup(lake, _now_ms()), *storage.store(lake, _now_ms())}
        _say(f"{len(days)} days summed up first")


def _rate_card(path: Path) -> RateCard:
    from gateway.pipeline.billing import prices
    from gateway.pipeline.billing.months import UTC_ZONE

    card = prices.load(path)
    if card.time_zone is not UTC_ZONE:
        raise ConfigurationError(f"{path}: time_zone: tables have sums of days in UTC alone; UTC")
    return card


def _month(text: str | None, now: datetime) -> Month:
    from gateway.pipeline.billing.months import Month

    try:
        return Month.read(text or f"{now.replace(day=1) - timedelta(days=1):%Y-%m}")
    except ValueError as error:
        raise ConfigurationError(f"--month {text}: {error}") from None


def _chargeback(spark: SparkSession, options: argparse.Namespace) -> int:
    from gateway.pipeline import invoicing
    from gateway.pipeline.billing.closing import Closed, Correction
    from gateway.pipeline.chargeback import gone_before, has_sums, month_of
    from gateway.pipeline.lake import Lake
    from gateway.pipeline.storage import byte_hours

    card = _rate_card(options.prices)
    now = datetime.now(card.time_zone)
    month = _month(options.month, now)
    closed, lake = invoicing.closed_months(options.out), Lake(spark, options.tables)
    bills = [*closed, *invoicing.corrected_months(options.out)]
    state = _summed_up(lake)
    if not has_sums(state):
        raise ConfigurationError(
            f"{options.tables}: has nothing to bill; name the folder that ingest takes records into"
        )

    def look(month: Month) -> MonthlyUse:
        return month_of(lake, month, byte_hours(lake, month, state), state=state)

    def look_again(month: Month) -> MonthlyUse | None:
        if before := gone_before(state, month):
            _say(f"{month} stays as it was billed: its days before {before} are gone")
            return None
        return look(month)

    before = gone_before(state, month)
    if month in {it.month for it in closed} and not options.correct:
        later = "what changes it now is on the invoices of a later month"
        why = f"its days before {before} are gone" if before else later
        _say(f"{month} is closed and stays as it was billed: {why}")
        return 0
    if before:
        raise ConfigurationError(
            f"--month {month}: its days before {before} are gone, which retain let go; "
            "name a later month"
        )
    use = look(month)
    if options.close or options.correct:
        invoicing.check(month, use, is_empty=options.empty, accepted=options.accept_missing)
    if options.correct:
        this = Closed(month, card, (), (), Correction(0, now.date(), options.correct))
        return _correct(options, this, bills, use)
    found = invoicing.adjustments(month, bills, look_again, card.adjusted_months)
    adjustments = found.pop(month, ())
    for other in found:
        what = "late records of closed months are on the invoices of"
        _say(f"{what} {other}, which is not closed: write these again")
    charges = invoicing.write(
        *(options.out, month, card, use, adjustments), for_spreadsheets=options.for_spreadsheets
    )
    if options.close:
        this = Closed(month, card, tuple(charges.lines()), adjustments)
        _say(f"closed: {invoicing.close(options.out, this, now)}")
    known = use.completeness
    _say(f"{len(charges.statements)} invoices in {options.out / str(month)}")
    _say(f"the whole: {card.currency.text(charges.total)}; {known.missing} records are missing")
    return 0


def _correct(
    options: argparse.Namespace, this: Closed, bills: Sequence[Closed], use: MonthlyUse
) -> int:
    from gateway.pipeline import invoicing

    path = invoicing.correct(
        *(options.out, this, bills, use), for_spreadsheets=options.for_spreadsheets
    )
    _say(f"corrected: {path}; write the invoices of open months again")
    return 0


def _recommend(spark: SparkSession, options: argparse.Namespace) -> int:
    from gateway.pipeline.lake import Lake
    from gateway.pipeline.limits import texts, writing
    from gateway.pipeline.limits.deciding import Policy
    from gateway.pipeline.recommend import recommend

    today, policy = datetime.now(UTC).date(), Policy(headroom=options.headroom)
    days = [(today - timedelta(days=it)).isoformat() for it in range(options.days)]
    usage, current = Lake(spark, options.tables).read("usage", days), writing.current(options.rules)
    limits, undecided = recommend(usage, policy, current)
    before = writing.expiry(options.rules)
    until = writing.good_until(today, policy.valid_days, before)
    changed = texts.write(options.rules, writing.document(limits, until))
    for it in undecided:
        _say(f"no limit of {it.seen.what} for {it.seen.tenant!a}: {it.reason}")
    _say(f"{len(limits)} limits in {options.rules}" + ("" if changed else ", as before"))
    return 0


def _retain(spark: SparkSession, options: argparse.Namespace) -> int:
    from gateway.pipeline import invoicing, keeping
    from gateway.pipeline.lake import Lake

    lake, today = Lake(spark, options.tables), datetime.now(UTC).date()
    kept = keeping.tiers(dict(options.keep))
    closed = None
    if kept["daily"] != keeping.FOREVER and not options.even_unbilled:
        closed = frozenset(it.month for it in invoicing.closed_months(options.invoices))
    if options.dry_run:
        found = keeping.old(lake.state(), kept, today, closed)
    else:
        found = keeping.retain(lake, kept, today, _now_ms(), closed)
    for it in found:
        if it.days:
            _say(f"{it.table}: {len(it.days)} days, {it.days[0]} to {it.days[-1]}")
    for kind, job in zip(keeping.FEEDS, ("rollup", "store"), strict=True):
        waiting = {day for it in found if it.table in keeping.MEMBERS[kind] for day in it.waiting}
        if waiting:
            what = f"{kind}: {len(waiting)} days from {min(waiting)} on stay"
            _say(f"{what}: run gateway pipeline {job} first")
    if counts := keeping.holding(found, closed or frozenset()):
        months = ", ".join(f"{month} ({number})" for month, number in counts.items())
        _say(
            f"{sum(counts.values())} days of sums stay, of months that are not closed in "
            f"{options.invoices}: {months}; close them by gateway pipeline chargeback --close, "
            "or let them go by --even-unbilled"
        )
    number = sum(len(it.days) for it in found)
    _say(f"{number} days {'would go' if options.dry_run else 'are gone'}")
    return 0


def _compact(spark: SparkSession, options: argparse.Namespace) -> int:
    from gateway.pipeline import keeping
    from gateway.pipeline.billing.meters import HOUR
    from gateway.pipeline.lake import Lake

    if options.unread < keeping.KEPT_MS:
        hours = keeping.KEPT_MS // HOUR
        raise ConfigurationError(f"--unread: jobs may still read younger files; {hours}h at least")
    removed = keeping.compact(Lake(spark, options.tables), _now_ms(), kept_ms=options.unread)
    _say(
        f"removed {removed.generations} generations of {removed.size / 1e6:,.1f} MB, "
        f"and {removed.commits} commits"
    )
    return 0


def _backtest(spark: SparkSession, options: argparse.Namespace) -> int:
    from gateway.pipeline.backtest import backtest
    from gateway.pipeline.lake import Lake
    from gateway.pipeline.limits.buckets import Bucket, Untried, buckets
    from gateway.rules import files

    lake, found = Lake(spark, options.tables), [*buckets(files.rules_of(files.load(options.rules)))]
    days = _last_days(lake, "usage", options.days)
    tried = [it for it in found if isinstance(it, Bucket)]
    held = backtest(lake.read("usage", days), tried)
    strict = sorted((it for it in held if it.exceeded), key=lambda it: (-it.seconds, it.rule))
    for it in strict[:SHOWN]:
        known = f"; frames waited in {it.waited} already" if it.waited else ""
        _print(
            f"{it.rule}: {it.what}: {it.exceeded} of {it.intervals} intervals, "
            f"{it.part:.2%} of traffic, waits in {it.seconds:,.0f} s; "
            f"most on {it.worst_day} ({it.worst_seconds:,.0f} s){known}"
        )
    for other in (it for it in found if isinstance(it, Untried)):
        _say(f"{other.rule} cannot be tried: {other.reason}")
    _say(f"{len(strict)} of {len(held)} limits would have held something in {len(days)} days")
    return 0


def _forecast(spark: SparkSession, options: argparse.Namespace) -> int:
    from gateway.pipeline import forecast
    from gateway.pipeline.billing import prices
    from gateway.pipeline.lake import Lake
    from gateway.rules import files

    lake, disks = Lake(spark, options.tables), dict(map(_disk, options.disk))
    rules = files.rules_of(files.load(options.rules)) if options.rules else ()
    rules = tuple(it for it in rules if not it.has_expired(time.time()))
    found = [*forecast.of_limits(lake, rules)]
    if options.prices is not None or disks:
        _summed_up(lake)
    if options.prices is not None:
        card = prices.load(options.prices)
        found += forecast.of_prices(lake, card, datetime.now(UTC).date())
    found += forecast.of_disks(lake, disks) if disks else ()
    for it in found:
        _print(f"{it.mark.who!a}: {it.mark.what}: {_days_left(it.forecast)}")
    _say(f"{len(found)} forecasts")
    return 0


def _disk(text: str) -> tuple[str, int]:
    from gateway.config import units

    cluster, _, size = text.partition("=")
    try:
        return cluster, units.size(size)
    except ValueError:
        raise ConfigurationError(f"--disk {text}: is no disk; main=8000GB") from None


def _days_left(found: Forecast | None) -> str:
    if found is None:
        return "too few days to say"
    error = "" if found.error is None else f" (forecasts of the past were {found.error:.0%} off)"
    when = "not within sight" if found.days is None else f"in {found.days} days"
    return f"{when}{error}"


SHOWN = 100
"""Findings that are printed; all are in the table."""


def _neighbours(spark: SparkSession, options: argparse.Namespace) -> int:
    from gateway.pipeline import neighbours
    from gateway.pipeline.lake import Lake

    lake, thresholds = Lake(spark, options.tables), neighbours.Thresholds(slot_ms=options.slot)
    if options.watch is not None:
        return _watch(lake, thresholds, options)
    for name in ("late", "every", "out"):
        if getattr(options, name) is not None:
            raise ConfigurationError(f"--{name} is of alerts; --watch FOLDER of records")
    days = _last_days(lake, "usage", options.days)
    found = neighbours.update(lake, days, _now_ms(), thresholds)
    for row in found.orderBy("start_ms", "culprit").limit(SHOWN).collect():
        _print(
            f"{_time(row.start_ms)} to {_time(row.end_ms)} in {row.cluster}: {row.culprit!a} "
            f"grew {row.growth:.1f}-fold, {len(row.victims)} tenants waited"
        )
    _say(f"{found.count()} incidents, in the table `neighbours`")
    return 0


def _watch(lake: Lake, thresholds: Thresholds, options: argparse.Namespace) -> int:
    _end_when_interrupted()
    while True:
        began = time.monotonic()
        _look(lake, thresholds, options)
        if options.every is None:
            return 0
        _rest(max(0.0, began + options.every / 1000 - time.monotonic()))


def _end_when_interrupted() -> None:
    """Have an interrupt end the process at once. A kill loses nothing here, and what Spark does
    instead, while it calls Python, is to fail at great length."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _look(lake: Lake, thresholds: Thresholds, options: argparse.Namespace) -> None:
    from gateway.pipeline.watching import lines
    from gateway.pipeline.watching.run import LATE_MS, watch

    def give(alerts: Iterable[Row]) -> None:
        found = map(lines.line, alerts)
        if options.out is not None:
            lines.append(options.out, found)
            return
        for it in found:
            print(it, flush=True)

    late_ms = LATE_MS if options.late is None else options.late
    days = _last_days(lake, "usage", options.days)
    if not days:
        _say("nothing is known of what is usual: run gateway pipeline ingest, and rerun this")
    run = watch(lake, options.watch, _now_ms(), thresholds, days, give, late_ms=late_ms)
    _say(f"{run.alerts} alerts from {run.records} records; {run.late} came too late to be judged")
    if run.repeated:
        _say(f"{run.repeated} records had come before")
    if run.bad:
        _say(f"{run.bad} lines are no records; gateway pipeline ingest puts them aside")


def _abuse(spark: SparkSession, options: argparse.Namespace) -> int:
    from gateway.pipeline import abuse
    from gateway.pipeline.lake import Lake

    if options.enforce and options.rules is None:
        raise ConfigurationError("--enforce has no rules; --rules rules/abuse.yaml")
    lake = Lake(spark, options.tables)
    days = _last_days(lake, "events", options.days)
    found = abuse.update(lake, days, _now_ms())
    for row in found.orderBy("start_ms", "kind").limit(SHOWN).collect():
        who = f"{row.principal!a}" if row.principal else f"{row.principals or 'unknown'} principals"
        what = "an attack" if row.is_attack else "a mistake"
        _print(
            f"{_time(row.start_ms)} to {_time(row.end_ms)}: {row.kind} ({what}) of {who} "
            f"from {row.network or f'{row.networks} networks'}, {row.failures} failures"
        )
    _say(f"{found.count()} findings, in the table `abuse`")
    if options.rules is not None:
        _deny(lake.read("events", days), found, options)
    return 0


def _deny(events: DataFrame, found: DataFrame, options: argparse.Namespace) -> None:
    """Write rules against the attackers that were found."""
    from gateway.pipeline.attackers import attackers
    from gateway.pipeline.limits import denying
    from gateway.pipeline.limits.texts import write

    now = datetime.now(UTC)
    since_ms = round((now - options.ttl).timestamp() * 1000)
    denied, left = denying.decide(attackers(events, found, since_ms), options.ttl, now)
    changed = write(options.rules, denying.document(denied, enforce=options.enforce))
    for it in left:
        _say(f"no rule against {denying.told(it.attacker)}: {it.reason}")
    _say(f"{len(denied)} rules in {options.rules}" + ("" if changed else ", as before"))


def _last_days(lake: Lake, table: str, number: int) -> list[str]:
    return sorted(lake.state().days.get(table, {}))[-number:]


def _time(ms: int) -> str:
    return f"{datetime.fromtimestamp(ms / 1000, UTC):%Y-%m-%d %H:%M}"


def _print(text: str) -> None:
    print(text)


if __name__ == "__main__":
    sys.exit(main())
