"""`gateway doctor`: runs all checks, prints the table of their findings, and sets the exit
status."""

from __future__ import annotations

import os
import shutil
import sys
import time
from functools import partial
from pathlib import Path

import trio

from gateway.assembly import make_client_side
from gateway.brokers.names import TemplateNames
from gateway.config import model
from gateway.config.load import load
from gateway.doctor import (
    brokers,
    files,
    handshakes,
    issuers,
    machine,
    ports,
    records,
    store,
    tls_files,
)
from gateway.doctor.checks import Plan
from gateway.doctor.finding import Section, nothing_failed
from gateway.doctor.reach import LONGEST_TIMEOUT, Network, run_all
from gateway.doctor.report import table
from gateway.errors import ConfigurationError
from gateway.identity.credential import (
    NoCredential,
    OwnCertificate,
    PasswordFile,
    StoredCredential,
    TokenFile,
)
from gateway.identity.each_principal import EachPrincipal
from gateway.protocols import PLUGINS
from gateway.rules import files as rule_files
from gateway.tls.sides import ClientSide
from gateway.tls.stream import Shared

WORKS, FAILS, INTERRUPTED = 0, 1, 130
"""Exit statuses; 130 is the shells' own for Ctrl-C. An unreadable configuration has status 2."""


def doctor(path: Path) -> int:
    """Check everything that a configuration names, print the findings, and return the exit status.

    Raises `ConfigurationError` if the configuration file itself is wrong.
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
    """Run all checks, and return the sections of the report. `folder`: the folder of the
    configuration file. Raises `ConfigurationError` if a file of rules is wrong."""
    if configuration.rules:
        rule_files.rules_of(rule_files.load(configuration.rules))
    listening = partial(_examine_ports, configuration, folder, network)
    stores = [partial(_examine_store, configuration.store, network)] if configuration.store else []
    issuer_checks = (
        [partial(_examine_issuers, configuration)] if issuers.has_any(configuration) else []
    )
    topics = [partial(_examine_records, configuration)] if records.has_any(configuration) else []
    clusters = [
        partial(_examine_brokers, configuration, name, network) for name in configuration.clusters
    ]
    now = time.time()
    held = (
        *files.examine(configuration, folder, now),
        *tls_files.examine(configuration, folder, now),
    )
    return [
        Section("files", held),
        *await run_all([listening, *stores, *issuer_checks, *clusters, *topics]),
        Section("machine", tuple(machine.examine(configuration))),
    ]


async def _examine_ports(
    configuration: model.Configuration, folder: Path, network: Network
) -> Section:
    bound = await ports.examine(configuration, network)
    return Section("ports", (*bound, *await handshakes.examine(configuration, folder, network)))


async def _examine_store(configured: model.Store, network: Network) -> Section:
    return Section("store", (await store.examine(configured, network),))


async def _examine_issuers(configuration: model.Configuration) -> Section:
    return Section("issuers", tuple(await issuers.examine(configuration)))


async def _examine_records(configuration: model.Configuration) -> Section:
    assert configuration.usage is not None
    assert configuration.usage.topic is not None
    own = await _own_credential(configuration.clusters[configuration.usage.topic.cluster])
    return Section("usage records", tuple(await records.examine(configuration, own)))


async def _examine_brokers(
    configuration: model.Configuration, name: str, network: Network
) -> Section:
    return await brokers.examine(await _plan(configuration, name, network))


async def _plan(configuration: model.Configuration, name: str, network: Network) -> Plan:
    cluster = configuration.clusters[name]
    listeners = [listener for listener in configuration.listeners if listener.cluster == name]
    modes = {listener.identity.mode for listener in listeners}
    own = await _own_credential(cluster)
    held = files.read_claims(own.current().data) if own is not None else None
    role, protocol = held.role if held else None, configuration.protocol_of(name)
    names = _template_names(cluster.names, protocol)
    tls = _client_side(cluster)
    return Plan(name, protocol, cluster, modes, own, role, names, network, tls, listeners)


def _template_names(names: model.Names, protocol: str) -> TemplateNames | None:
    """Return the template of brokers' names; None without one, and for brokers with ids."""
    template = names.template
    if template is None or PLUGINS[protocol].numbers_brokers:
        return None
    return TemplateNames(template.advertise, template.broker)


def _client_side(cluster: model.Cluster) -> ClientSide | None:
    """Return the maker of TLS streams to brokers; None without TLS, or if a file is wrong, which
    `tls_files` reports."""
    try:
        return make_client_side(cluster, Shared())
    except ConfigurationError:
        return None


async def _own_credential(cluster: model.Cluster) -> StoredCredential | None:
    """Return the gateway's credential; None if it cannot be used, which `files` or `issuers`
    report."""
    if cluster.credential is None:
        return NoCredential()
    try:
        if cluster.credential.token_file is not None:
            return TokenFile(cluster.credential.token_file)
        if cluster.credential.basic is not None:
            basic = cluster.credential.basic
            return PasswordFile(basic.username, basic.password_file)
        if cluster.credential.each_principal is not None:
            return EachPrincipal(cluster.credential.each_principal.passwords_file)
        if cluster.credential.oauth2 is not None:
            return await issuers.own_token(cluster.credential.oauth2)
    except (OSError, ValueError, ConfigurationError):
        return None
    return OwnCertificate()
