"""`spark-submit several.py COMMANDS`: runs several jobs in one session: on a cluster each session
takes half a minute to start. COMMANDS: a JSON list of command lines."""

from __future__ import annotations

import argparse
import json
import sys

from pyspark.sql import SparkSession

from gateway.pipeline import command
from gateway.pipeline.sessions import session


def options_of(words: list[str]) -> argparse.Namespace:
    """Return the options of a command line."""
    parser = argparse.ArgumentParser()
    command.add_to(parser)
    return parser.parse_args(words)


def run(spark: SparkSession, commands: list[list[str]]) -> None:
    """Run jobs, each of which must end well."""
    for it in commands:
        options = options_of(it)
        assert options.job(spark, options) == 0, it


if __name__ == "__main__":
    run(session("several"), json.loads(sys.argv[1]))
