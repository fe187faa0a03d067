"""The command line of `gateway sandbox`. Imports the sandbox of a protocol only to run it."""

from __future__ import annotations

import argparse
from pathlib import Path

from gateway.errors import ConfigurationError

Options = argparse.Namespace

PULSAR, KAFKA = "pulsar", "kafka"

BROKERS = {
    PULSAR: "127.0.0.1:16650,127.0.0.1:16651",
    KAFKA: "127.0.0.1:19092,127.0.0.1:19093",
}
"""The default of --brokers, by protocol."""

CONTROL = "127.0.0.1:16680"
"""The default of --control."""

OWN = {
    PULSAR: ("control", "token_secret", "proxy_role"),
    KAFKA: ("users", "unsecured_tokens"),
}
"""The options that one protocol alone has. Without a value they are None, empty or False."""


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the options of `gateway sandbox` to an argument parser."""
    parser.set_defaults(command=run)
    add = parser.add_argument
    add(
        "--protocol",
        choices=sorted(BROKERS, reverse=True),
        default=PULSAR,
        help="what the brokers speak (default: %(default)s)",
    )
    text = f"where each broker listens (default: {BROKERS[PULSAR]}; of Kafka: {BROKERS[KAFKA]})"
    add("--brokers", metavar="HOST:PORT,...", help=text)
    pulsar = parser.add_argument_group("Pulsar")
    text = f"HTTP to move topics and cause faults (default: {CONTROL})"
    pulsar.add_argument("--control", metavar="HOST:PORT", help=text)
    text = "admit only clients with a token signed by it"
    pulsar.add_argument("--token-secret", type=Path, metavar="FILE", help=text)
    text = "a role that may act for other principals; may be repeated"
    pulsar.add_argument("--proxy-role", action="append", default=[], metavar="ROLE", help=text)
    kafka = parser.add_argument_group("Kafka")
    text = "admit only clients that it names, by lines of name:password (SASL PLAIN)"
    kafka.add_argument("--users", type=Path, metavar="FILE", help=text)
    text = "admit clients by tokens that nobody has signed (SASL OAUTHBEARER)"
    kafka.add_argument("--unsecured-tokens", action="store_true", help=text)


def run(options: Options) -> int:
    """Run a sandbox until SIGTERM or SIGINT; return the exit status. Raises
    `ConfigurationError`."""
    protocol = options.protocol
    for other, names in OWN.items():
        given = [name for name in names if other != protocol and getattr(options, name)]
        if given:
            option = given[0].replace("_", "-")
            raise ConfigurationError(f"--{option} goes with --protocol {other}")
    brokers = BROKERS[protocol] if options.brokers is None else options.brokers
    if protocol == KAFKA:
        from gateway.lab.kafka import command as kafka

        tokens = options.unsecured_tokens
        return kafka.run(brokers=brokers, users=options.users, unsecured_tokens=tokens)
    from gateway.lab.sandbox import command as pulsar

    return pulsar.run(
        brokers=brokers,
        control=CONTROL if options.control is None else options.control,
        token_secret=options.token_secret,
        proxy_roles=options.proxy_role,
    )
