"""`python -m tests.bench.pipeline`: makes records, runs all jobs on them, and prints tables.

Each job is the command that a user gives, with the start of Spark in its time. DuckDB and Polars do
one of the rollups beside Spark, on the same records with the same result; they are installed below
build/ and nowhere else. `--skewed`: half of all records are of one topic.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from tests.bench.machine import description
from tests.bench.pipeline.records import BEGIN, Plan, Written, write
from tests.bench.pipeline.stages import Stage, stages
from tests.bench.pipeline.watching import FailedError, Measured, measured, size

CHECKOUT = Path(__file__).parents[3]
BUILD = CHECKOUT / "build" / "bench"
PEERS = BUILD / "peers"
PACKAGES = ("duckdb==2.0.1", "polars==2.1.0")

DISK = 500
"""Bytes of disk for each record: files, tables, and what Spark spills; a fifth more than was
measured."""

PRICES = "version: 1\ncurrency: EUR\nprices: {gb_in: 0.05, gb_out: 0.05, connection_hour: 0.001}\n"


class Row(NamedTuple):
    """A command that was measured. `written`: bytes of its result. `stage`: its heaviest one."""

    name: str
    measured: Measured
    written: int
    stage: Stage | None = None


@dataclass(frozen=True, slots=True)
class Bench:
    """Commands on the records in a folder. `records`: how many there are."""

    folder: Path
    records: int

    def jobs(self) -> Iterator[Row]:
        """Run the jobs of the pipeline, each after those that it needs."""
        prices, tables = self.folder / "prices.yaml", str(self.folder / "tables")
        prices.write_text(PRICES)
        month, days = f"{BEGIN:%Y-%m}", str(10**4)
        out, rules = (str(self.folder / name) for name in ("invoices", "rules.yaml"))
        yield self.job("ingest", tables, str(self.folder / "records"))
        yield self.job("rollup", tables)
        yield self.job("rollup", tables, name="rollup, nothing to do")
        yield self.job(
            "chargeback", tables, "--prices", str(prices), "--month", month, "--out", out
        )
        yield self.job("recommend", tables, "--rules", rules, "--days", days)
        yield self.job("neighbours", tables)

    def job(self, job: str, *words: str, name: str = "") -> Row:
        """Run a job, and read Spark's log of it."""
        conf, log = self.folder / "conf", self.folder / "log"
        for it in (conf, log):
            shutil.rmtree(it, ignore_errors=True)
            it.mkdir()
        settings = {"enabled": "true", "rolling.enabled": "false", "compress": "false"}
        settings["dir"] = log.as_uri()
        lines = (f"spark.eventLog.{key} {value}\n" for key, value in settings.items())
        (conf / "spark-defaults.conf").write_text("".join(lines))
        before = size(self.folder / "tables")
        command = (sys.executable, "-m", "gateway", "pipeline", job, *words)
        taken = self._measured(command, {"SPARK_CONF_DIR": str(conf)})
        heaviest = next(iter(stages(log)), None)
        return Row(name or job, taken, size(self.folder / "tables") - before, heaviest)

    def peers(self) -> Iterator[Row]:
        """Run one rollup by all, from lines and from the table, and compare the results."""
        (table,) = (self.folder / "tables" / "data" / "usage").iterdir()
        sources = {"lines": self.folder / "records" / "usage", "table": table}
        for form, source in sources.items():
            first: Path | None = None
            for who in ("spark", "duckdb", "polars"):
                out = self.folder / f"{who}-{form}"
                words = (who, form, str(source), str(out))
                taken = self._measured(_peer(*words), {"PYTHONPATH": str(PEERS)})
                if first is not None:
                    same = self._measured(
                        _peer("same", str(first), str(out)), {"PYTHONPATH": str(PEERS)}
                    )
                    say(f"  {who} and spark: {same.output.strip()}")
                first = first or out
                yield Row(f"{who}, one rollup from {form}", taken, size(out))

    def _measured(self, command: Sequence[str], environment: Mapping[str, str]) -> Measured:
        places = {"SPARK_LOCAL_DIRS": str(self.folder / "spark"), "PYTHONPATH": str(CHECKOUT)}
        found = {**places, **environment}
        found["PYTHONPATH"] = f"{found['PYTHONPATH']}:{CHECKOUT}"
        return measured(command, found, self.folder)


def _peer(*words: str) -> tuple[str, ...]:
    return (sys.executable, "-m", "tests.bench.pipeline.peers", *words)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the bench, and return the exit status."""
    options = _options(arguments)
    folder = BUILD / "pipeline"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    free, needed = shutil.disk_usage(folder).free, options.records * DISK
    if free < needed:
        say(f"{folder}: {needed / 1e9:.0f} GB are needed, and {free / 1e9:.0f} GB are free")
        return 1
    try:
        print(_run(options, folder))
    except FailedError as error:
        say(f"failed: {error}")
        return 1
    finally:
        if not options.keep:
            shutil.rmtree(folder)
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.pipeline", description=__doc__)
    parser.add_argument("--records", type=int, default=5_000_000, help="(%(default)s)")
    parser.add_argument("--days", type=int, default=10, help="that they are of (%(default)s)")
    parser.add_argument("--skewed", action="store_true", help="half of them of one topic")
    parser.add_argument("--alone", action="store_true", help="without DuckDB and Polars")
    parser.add_argument("--keep", action="store_true", help="leave records and tables")
    return parser.parse_args(arguments)


def _run(options: argparse.Namespace, folder: Path) -> str:
    plan = Plan(options.records, options.days, options.skewed)
    say(f"writing {plan.number:,} records")
    written = write(plan, folder / "records", os.cpu_count() or 1)
    bench, rows = Bench(folder, plan.number), list[Row]()
    for row in bench.jobs():
        say(_line(row, plan.number))
        rows.append(row)
    if not options.alone:
        _install()
        for row in bench.peers():
            say(_line(row, plan.number))
            rows.append(row)
    kept = BUILD / f"pipeline-{plan.number}{'-skewed' if plan.is_skewed else ''}.json"
    kept.write_text(json.dumps([_figures(row) for row in rows], indent=1) + "\n")
    return "\n".join([*_head(plan, written), "", *_table(rows, plan.number), "", *_tasks(rows)])


def _install() -> None:
    if PEERS.exists():
        return
    pip = (sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    subprocess.run([*pip, "--target", str(PEERS), *PACKAGES], check=True)


# -- tables ------------------------------------------------------------------------------------


def _head(plan: Plan, written: Written) -> list[str]:
    kind = "half are of one topic" if plan.is_skewed else "the first of 10,000 topics has a tenth"
    packed, plain = (it / 1e6 for it in written[1:])
    return [
        f"machine: {description()}",
        f"load of the machine in the last minute: {os.getloadavg()[0]:.1f}",
        f"{plan.number:,} records of {plan.days} days; {kind}",
        f"{written.files} gzip files: {packed:,.0f} MB, {plain:,.0f} MB unpacked",
    ]


def _line(row: Row, records: int) -> str:
    it = row.measured
    return (
        f"| {row.name} | {it.seconds:.1f} | {it.cpu_s:.1f} | {records / it.seconds:,.0f} "
        f"| {it.memory / 1e9:.1f} | {it.disk / 1e9:.2f} | {row.written / 1e6:,.1f} |"
    )


def _table(rows: Sequence[Row], records: int) -> list[str]:
    return [
        "| Command | s | CPU s | records/s | memory, GB | disk, GB | written, MB |",
        "|---|---|---|---|---|---|---|",
        *(_line(row, records) for row in rows),
    ]


def _tasks(rows: Sequence[Row]) -> list[str]:
    found = ["| Heaviest stage of | tasks | median, s | longest, s | ratio | most read, MB |"]
    found.append("|---|---|---|---|---|---|")
    for name, it in ((row.name, row.stage) for row in rows if row.stage is not None):
        middle = max(it.tasks) / it.skew
        found.append(
            f"| {name} | {len(it.tasks)} | {middle:.2f} | {max(it.tasks):.2f} | {it.skew:.1f} "
            f"| {it.most / 1e6:.1f} |"
        )
    return found


def _figures(row: Row) -> dict[str, object]:
    found = row.measured._asdict() | {"name": row.name, "written": row.written}
    return found | ({"tasks": row.stage.tasks} if row.stage else {})


if __name__ == "__main__":
    sys.exit(main())
