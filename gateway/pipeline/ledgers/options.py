"""The options of `gateway pipeline snapshot`. Imports nothing that a command may lack."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument(
        "--zookeeper",
        metavar="HOST:PORT[,...]",
        help="the ZooKeeper in which the brokers keep their topics; it is only read",
    )
    source.add_argument(
        "--admin", metavar="URL", help="the brokers' HTTP address; they load each topic for it"
    )
    parser.add_argument(
        "--cluster", required=True, metavar="NAME", help="the name of the cluster in the records"
    )
    parser.add_argument(
        "--token-file", type=Path, metavar="FILE", help="a superuser's token, for --admin"
    )
    parser.add_argument(
        "--ca-file",
        type=Path,
        metavar="FILE",
        help="authorities that sign the brokers' certificates, for --admin; "
        "otherwise those that this machine trusts",
    )
    parser.add_argument(
        "folder", type=Path, metavar="FOLDER", help="where to write dt=DAY/CLUSTER-TIME.jsonl.gz"
    )
