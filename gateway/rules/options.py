"""The command line of `gateway rules`. Imports what a command needs when it runs."""

from __future__ import annotations

import argparse
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path

FOLDER = Path("rules")
"""Read if the command line names no files."""

ACTIONS = ("produce", "consume", "lookup", "connect")

Options = argparse.Namespace


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the commands of `gateway rules`."""
    commands = parser.add_subparsers(required=True, metavar="RULES_COMMAND")

    def add(name: str, help: str) -> argparse.ArgumentParser:
        def run(options: Options) -> int:
            from gateway.rules import command

            return command.COMMANDS[name](options)

        found = commands.add_parser(name, help=help, description=help)
        found.set_defaults(command=run)
        return found

    _takes_rules(add("check", "say whether files of rules are right"))
    _diff_options(add("diff", "show what differs; the status is 1 where anything does"))
    _explain_options(add("explain", "show which limits hold for somebody, and why"))
    add("schema", "print the JSON schema of a file of rules, for editors")


def _takes_rules(parser: argparse.ArgumentParser) -> None:
    text = "files of rules, or folders of such files (default: the folder rules)"
    parser.add_argument(
        "rules", type=Path, nargs="*", default=[FOLDER], metavar="FILE|DIR", help=text
    )


def _diff_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("old", type=Path, metavar="OLD", help="a file of rules, or a folder")
    parser.add_argument("new", type=Path, metavar="NEW", help="the same as it is to be")


def _explain_options(parser: argparse.ArgumentParser) -> None:
    _takes_rules(parser)
    add = parser.add_argument
    add("--action", required=True, choices=ACTIONS, help="what is done")
    add("--topic", type=_topic, help="on which topic: orders, acme/web/orders, or the whole name")
    add("--principal", help="by whom")
    add("--listener", help="on which listener")
    add("--client", type=_address, metavar="ADDRESS", help="from which address")
    add("--subscription", help="by which subscription")
    add("--all", action="store_true", help="the rules that do not apply too, and why")


def _topic(text: str) -> str:
    from gateway.wire.pulsar.topics import named

    if named(text) is None:
        raise argparse.ArgumentTypeError("is not a topic; tenant/namespace/topic")
    return text


def _address(text: str) -> IPv4Address | IPv6Address:
    try:
        return ip_address(text)
    except ValueError:
        raise argparse.ArgumentTypeError("is not an address; 10.1.2.3 or 2001:db8::1") from None
