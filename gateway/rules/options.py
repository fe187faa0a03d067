"""The command line of `gateway rules`. Each command imports the modules that it needs when it
runs."""

from __future__ import annotations

import argparse
from datetime import datetime
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path

FOLDER = Path("rules")
"""Read if the command line names no files."""

RECOMMENDED, PROMOTED = FOLDER / "recommended" / "tenants.yaml", FOLDER / "promoted.yaml"
"""What `gateway pipeline recommend` writes, and where promoted rules go."""

ACTIONS = ("produce", "consume", "lookup", "connect", "administer")

Options = argparse.Namespace


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the commands of `gateway rules` to a parser."""
    commands = parser.add_subparsers(required=True, metavar="RULES_COMMAND")

    def add(name: str, help: str) -> argparse.ArgumentParser:
        def run(options: Options) -> int:
            from gateway.rules import command

            try:
                return command.COMMANDS[name](options)
            except argparse.ArgumentError as wrong:
                subparser.error(str(wrong))

        subparser = commands.add_parser(name, help=help, description=help)
        subparser.set_defaults(command=run)
        return subparser

    _takes_rules(add("check", "check files of rules"))
    _diff_options(add("diff", "show differences; the status is 1 if there are any"))
    _explain_options(add("explain", "show which limits apply to a client, and why"))
    _promote_options(add("promote", "have a recommended limit enforced, which so far only counts"))
    add("schema", "print the JSON schema of a file of rules, for editors")


def _takes_rules(parser: argparse.ArgumentParser) -> None:
    text = "files of rules, or folders of such files (default: the folder rules)"
    parser.add_argument(
        "rules", type=Path, nargs="*", default=[FOLDER], metavar="FILE|DIR", help=text
    )


def _diff_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("old", type=Path, metavar="OLD", help="a file of rules, or a folder")
    parser.add_argument("new", type=Path, metavar="NEW", help="its new version")


def _promote_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", help="id of the rule: recommended.…")
    source, target = RECOMMENDED, PROMOTED
    add = parser.add_argument
    add("--from", dest="source", type=Path, default=source, help="its file (%(default)s)")
    add("--to", dest="target", type=Path, default=target, help="where it goes (%(default)s)")
    text = "2026-12-24, or 2026-12-24T18:00:00Z: when it ends to have an effect (default: never)"
    add("--expires", type=_moment, metavar="MOMENT", help=text)


def _explain_options(parser: argparse.ArgumentParser) -> None:
    _takes_rules(parser)
    add = parser.add_argument
    add("--action", required=True, choices=ACTIONS, help="the action")
    add("--protocol", type=_protocol, help="what the client speaks, as a listener's")
    add("--topic", help="the topic: orders, acme/web/orders, or the whole name")
    add("--principal", help="the principal")
    add("--listener", help="the listener")
    add("--client", type=_address, metavar="ADDRESS", help="the client's address")
    add("--subscription", help="the subscription")
    add("--all", action="store_true", help="also show rules that do not apply, and why")


def _moment(text: str) -> datetime:
    from gateway.policy.expiry import moment

    try:
        return moment(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _protocol(text: str) -> str:
    from gateway.config.units import protocol

    try:
        return protocol(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _address(text: str) -> IPv4Address | IPv6Address:
    try:
        return ip_address(text)
    except ValueError:
        raise argparse.ArgumentTypeError("is not an address; 10.1.2.3 or 2001:db8::1") from None
