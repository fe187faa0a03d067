"""`gateway doctor`: runs all checks, prints their table, and sets the exit status."""

from __future__ import annotations

import os
import shutil
import sys
import time
from functools import partial
from pathlib import Path

import trio

from gateway.brokers.names import TemplateNames
from gateway.config import model
from gateway.config.load import load
from gateway.doctor import brokers, files, machine, ports, store
from gateway.doctor.checks import Plan
from gateway.doctor.finding import Section, nothing_failed
from gateway.doctor.reach import LONGEST_TIMEOUT, Network, run_all
from gateway.doctor.report import table
from gateway.errors import ConfigurationError
from gateway.identity.credential import NoCredential, OwnCredential, TokenFile

WORKS, FAILS, INTERRUPTED = 0, 1, 130
"""Exit statuses; 130 is the shells' own for Ctrl-C. An unreadable configuration has status 2."""


def doctor(path: Path) -> int:
    """Check everything that a configuration names, print the findings, and return the exit status.

    Raises `ConfigurationError` if the file itself is wrong.
    """
    configuration = load(path)
    network = Network(min(configuration.deadlines.dial, LONGEST_TIMEOUT))
    sections: list[Section] | None = None
    try:
        sections = trio.run(examine, configuration, path.absolute().parent, network)
    except* KeyboardInterrupt:
        pass
    if sections is None:
        return INTERRUPTED
    width = shutil.get_terminal_size().columns
    colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR")  # see no-color.org
    sys.stdout.write(table(sections, width, colour=colour))
    return WORKS if nothing_failed(sections) else FAILS


async def examine(
    configuration: model.Configuration, folder: Path, network: Network
) -> list[Section]:
    """Run all checks; `folder` is the configuration's own."""
    listening = partial(_examine_ports, configuration, network)
    stores = [partial(_examine_store, configuration.store, network)] if configuration.store else []
    clusters = [
        partial(brokers.examine, _plan(configuration, name, network))
        for name in configuration.clusters
    ]
    return [
        Section("files", tuple(files.examine(configuration, folder, time.time()))),
        *await run_all([listening, *stores, *clusters]),
        Section("machine", tuple(machine.examine(configuration))),
    ]


async def _examine_ports(configuration: model.Configuration, network: Network) -> Section:
    return Section("ports", tuple(await ports.examine(configuration, network)))


async def _examine_store(configured: model.Store, network: Network) -> Section:
    return Section("store", (await store.examine(configured, network),))


def _plan(configuration: model.Configuration, name: str, network: Network) -> Plan:
    cluster = configuration.clusters[name]
    modes = {it.identity.mode for it in configuration.listeners if it.cluster == name}
    own = _own_credential(cluster)
    held = files.read_claims(own.current().data) if own is not None else None
    role, names = held.role if held else None, _template_names(cluster.names)
    protocol = configuration.protocol_of(name)
    return Plan(name, protocol, cluster, modes, own, role, names, network)


def _template_names(names: model.Names) -> TemplateNames | None:
    template = names.template
    return None if template is None else TemplateNames(template.advertise, template.broker)


def _own_credential(cluster: model.Cluster) -> OwnCredential | None:
    """Return the gateway's credential; None if its file is wrong, which `files` reports."""
    if cluster.credential is None:
        return NoCredential()
    try:
        return TokenFile(cluster.credential.token_file)
    except ConfigurationError:
        return None
