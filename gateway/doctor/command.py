"""`gateway doctor`: all tries at once, their table, and whether all is well."""

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
from gateway.doctor.brokers import Plan
from gateway.doctor.finding import Section, works
from gateway.doctor.reach import LONGEST_PATIENCE, Network, together
from gateway.doctor.report import table
from gateway.errors import ConfigurationError
from gateway.identity.credential import NoCredential, OwnCredential, TokenFile

WORKS, FAILS, INTERRUPTED = 0, 1, 130
"""Exit statuses; 130 is what shells give to a command that Ctrl-C ended. A configuration that
cannot be read is `ConfigurationError`, and status 2."""


def doctor(path: Path) -> int:
    """Try all that a configuration names, and print what works. Answers the exit status.

    Raises `ConfigurationError` where the file itself is wrong.
    """
    configuration = load(path)
    network = Network(min(configuration.deadlines.dial, LONGEST_PATIENCE))
    sections: list[Section] | None = None
    try:
        sections = trio.run(examine, configuration, path.absolute().parent, network)
    except* KeyboardInterrupt:
        pass
    if sections is None:
        return INTERRUPTED
    width = shutil.get_terminal_size().columns
    sys.stdout.write(table(sections, width, colour=_wants_colour()))
    return WORKS if works(sections) else FAILS


async def examine(
    configuration: model.Configuration, folder: Path, network: Network
) -> list[Section]:
    """Everything that can be tried; `folder` is the configuration's own."""
    listening = partial(_ports, configuration, network)
    stores = [partial(_store, configuration.store, network)] if configuration.store else []
    clusters = [
        partial(brokers.examine, _plan(configuration, name, network))
        for name in configuration.clusters
    ]
    return [
        Section("files", tuple(files.examine(configuration, folder, time.time()))),
        *await together([listening, *stores, *clusters]),
        Section("machine", tuple(machine.examine(configuration))),
    ]


async def _ports(configuration: model.Configuration, network: Network) -> Section:
    return Section("ports", tuple(await ports.examine(configuration, network)))


async def _store(configured: model.Store, network: Network) -> Section:
    return Section("store", (await store.examine(configured, network),))


def _plan(configuration: model.Configuration, name: str, network: Network) -> Plan:
    cluster = configuration.clusters[name]
    modes = {it.identity.mode for it in configuration.listeners if it.cluster == name}
    own = _own(cluster)
    held = files.claims(own.current().data) if own is not None else None
    role, names = held.role if held else None, _template_names(cluster.names)
    return Plan(name, cluster, modes, own, role, names, network)


def _template_names(names: model.Names) -> TemplateNames | None:
    template = names.template
    return None if template is None else TemplateNames(template.advertise, template.broker)


def _own(cluster: model.Cluster) -> OwnCredential | None:
    """Our credential; None where its file is wrong, which `files` tells."""
    if cluster.credential is None:
        return NoCredential()
    try:
        return TokenFile(cluster.credential.token_file)
    except ConfigurationError:
        return None


def _wants_colour() -> bool:
    """See no-color.org."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")
