"""The `gateway` command."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from gateway import __version__
from gateway._pure import IMPLEMENTATION
from gateway.command_line import Parser
from gateway.errors import BAD_CONFIGURATION, ConfigurationError
from gateway.lab import options as sandbox_options
from gateway.pipeline import command as pipeline
from gateway.rules import options as rules_options

CONFIGURATION = "gateway.yaml"
CONSOLE = "http://127.0.0.1:8090"
"""The file to read if neither the command line nor `GATEWAY_CONFIG` names one."""

Options = argparse.Namespace
Command = Callable[[Options], int]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command that the arguments name, and return its exit status."""
    options = _parser().parse_args(arguments)
    command: Command = options.command
    try:
        return command(options)
    except ConfigurationError as error:
        print(error, file=sys.stderr)
        return BAD_CONFIGURATION


# -- commands ----------------------------------------------------------------------------------
# Each command imports what it needs when it runs: `--version` and mistyped commands stay fast.


def _run(options: Options) -> int:
    from gateway.system.interpreter import postpone_collections

    postpone_collections()
    from gateway.handing import handed

    configuration = handed(options.configuration)
    from gateway.system.machine import processes  # which knows the settings' face by now

    size = processes(configuration.workers)
    if size > 1:
        from gateway.workers import parent

        return parent.run(configuration, size, trace=options.trace)
    from gateway.app import run

    return run(configuration, trace=options.trace)


def _check(options: Options) -> int:
    from gateway.app import check

    print(check(options.configuration))
    return 0


def _doctor(options: Options) -> int:
    from gateway.doctor.command import doctor

    return doctor(options.configuration)


def _init(options: Options) -> int:
    from gateway.config.init import write

    print(write(options.use, options.configuration, tls=options.tls))
    return 0


def _demo(options: Options) -> int:
    from gateway.lab.demo.command import run

    return run(
        seconds=options.seconds,
        brokers=options.brokers,
        picture=options.picture,
        protocol=options.protocol,
    )


def _top(options: Options) -> int:
    from gateway.verifiers import explained

    try:
        from gateway.console.top import run
    except ModuleNotFoundError as missing:
        raise explained(missing) from None

    return run(options.url, options.token_file, options.ca_file, seconds=options.seconds)


def _usage(options: Options) -> int:
    from gateway.verifiers import explained

    try:
        from gateway.usage.command import command

        return command(options)  # which imports more for a topic
    except ModuleNotFoundError as missing:
        raise explained(missing) from None


# -- the command line --------------------------------------------------------------------------


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="gateway", description="A transparent gateway in front of message brokers."
    )
    version = f"gateway {__version__} ({IMPLEMENTATION})"
    parser.add_argument("--version", action="version", version=version)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def add(name: str, command: Command, help: str) -> argparse.ArgumentParser:
        subparser = commands.add_parser(name, help=help, description=help)
        subparser.set_defaults(command=command)
        return subparser

    run = add("run", _run, "serve clients as a configuration file says")
    _add_configuration(run)
    run.add_argument(
        "--trace", action="store_true", help="log every frame of every connection, secrets masked"
    )
    _add_configuration(add("check", _check, "check a configuration file"))
    _add_configuration(
        add("doctor", _doctor, "test everything that a configuration names, and give advice")
    )
    rules = "check, compare and explain rules of limits"
    rules_options.add_to(commands.add_parser("rules", help=rules, description=rules))
    _usage_options(add("usage", _usage, "sum up usage records"))
    jobs = "make bills, limits and reports from usage records, on Spark"
    pipeline.add_to(commands.add_parser("pipeline", help=jobs, description=jobs))
    _top_options(add("top", _top, "show a running gateway live, by its console"))
    _init_options(add("init", _init, "write an initial configuration with comments"))
    brokers = "run brokers in memory, for trials and tests"
    sandbox_options.add_to(commands.add_parser("sandbox", help=brokers, description=brokers))
    _demo_options(add("demo", _demo, "show the gateway at work: brokers, clients, a live table"))
    return parser


def _add_configuration(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "configuration",
        type=Path,
        nargs="?",
        default=Path(os.environ.get("GATEWAY_CONFIG") or CONFIGURATION),
        metavar=CONFIGURATION,
        help="the file (default: the one that GATEWAY_CONFIG names, or gateway.yaml)",
    )


def _top_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "url",
        nargs="?",
        default=CONSOLE,
        metavar="URL",
        help=f"of the console (default: {CONSOLE})",
    )
    parser.add_argument(
        "--token-file", type=Path, metavar="FILE", help="the token that the console needs"
    )
    parser.add_argument(
        "--ca-file", type=Path, metavar="FILE", help="who signed the console's certificate"
    )
    parser.add_argument(
        "--seconds", type=float, metavar="N", help="end after N seconds (default: at Ctrl-C)"
    )


def _usage_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "source",
        metavar="FOLDER|URL",
        help="the one that usage.folder names, or the URL of brokers with /tenant/namespace/topic",
    )
    parser.add_argument(
        "--token-file", type=Path, metavar="FILE", help="the token that brokers of a topic need"
    )
    parser.add_argument(
        "--ca-file", type=Path, metavar="FILE", help="who signed these brokers' certificates"
    )
    parser.add_argument(
        "--by",
        default="tenant,op",
        metavar="FIELD,...",
        help="fields of records to sum up by (default: %(default)s)",
    )
    parser.add_argument(
        "--format", choices=["table", "csv"], default="table", help="(default: %(default)s)"
    )


def _init_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("use", choices=["sidecar", "edge", "shaper", "kafka", "tubemq"])
    parser.add_argument(
        "configuration",
        type=Path,
        nargs="?",
        default=Path(CONFIGURATION),
        metavar=CONFIGURATION,
        help="where to write it; existing files are kept",
    )
    parser.add_argument(
        "--tls", action="store_true", help="with TLS to brokers, and to clients but of a sidecar"
    )


def _demo_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--protocol",
        choices=sorted(sandbox_options.BROKERS, reverse=True),
        default=sandbox_options.PULSAR,
        help="what brokers and clients speak (default: %(default)s)",
    )
    parser.add_argument(
        "--seconds", type=float, metavar="N", help="end after N seconds (default: at Ctrl-C)"
    )
    parser.add_argument(
        "--brokers",
        metavar="URL",
        help="a real cluster instead of the sandbox, by the URLs of its brokers",
    )
    parser.add_argument(
        "--picture", type=Path, metavar="FILE.svg", help="draw the last table to a file"
    )


if __name__ == "__main__":
    sys.exit(main())
