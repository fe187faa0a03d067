"""The `gateway` command."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from gateway import __version__
from gateway.errors import ConfigurationError

MISTAKEN = 2
"""Exit status where the configuration, or the command line, is wrong."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; answers its exit status."""
    options = _parser().parse_args(arguments)
    try:
        # Imported only now: `--version` and a mistyped command do without, and are quick.
        from gateway.app import check, run

        if options.command == "check":
            print(check(options.configuration))
            return 0
        return run(options.configuration, trace=options.trace)
    except ConfigurationError as error:
        print(error, file=sys.stderr)
        return MISTAKEN


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="gateway", description="A transparent gateway in front of message brokers."
    )
    parser.add_argument("--version", action="version", version=f"gateway {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    run = commands.add_parser("run", help="serve clients as a configuration file says")
    run.add_argument("configuration", type=Path, metavar="gateway.yaml")
    run.add_argument(
        "--trace", action="store_true", help="log every frame of every connection, secrets masked"
    )
    check = commands.add_parser("check", help="say whether a configuration file is right")
    check.add_argument("configuration", type=Path, metavar="gateway.yaml")
    return parser


if __name__ == "__main__":
    sys.exit(main())
