"""Checks the files of TLS: certificates and their keys, authorities, and lists of revoked
certificates."""

from __future__ import annotations

import ssl
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from cryptography import x509

from gateway.config import model
from gateway.doctor.certificates import (
    ListFacts,
    facts_of,
    is_issued_by,
    judge_authorities,
    judge_certificate,
    judge_chain,
    judge_list,
    judge_missing_lists,
    judge_names,
    list_facts_of,
)
from gateway.doctor.files import SECRET, check_rights, display_path, file_error
from gateway.doctor.finding import Finding
from gateway.doctor.rehearsal import is_trusted_here
from gateway.errors import ConfigurationError
from gateway.tls.files import KeyPair, certificates_of, load_pair, revocations_of


def examine(configuration: model.Configuration, folder: Path, now: float) -> Iterator[Finding]:
    """Check each file of TLS that a configuration names. `now`: seconds since 1970.

    `folder`: the folder of the configuration file. Findings show paths relative to it, as the
    configuration has them.
    """
    files = _Files(folder, now)
    own = list(_authorities_of(configuration))
    for listener in configuration.listeners:
        if listener.tls is not None:
            yield from files.of_listener(listener.name, listener.tls, own)
    for name, cluster in configuration.clusters.items():
        if cluster.tls is not None:
            yield from files.of_cluster(name, cluster.tls)


def _authorities_of(configuration: model.Configuration) -> Iterator[Path]:
    """Yield the files of authorities, which peers of the gateway may trust too."""
    for listener in configuration.listeners:
        if listener.tls is not None and listener.tls.client_ca_file is not None:
            yield listener.tls.client_ca_file
    for cluster in configuration.clusters.values():
        if cluster.tls is not None and cluster.tls.ca_file is not None:
            yield cluster.tls.ca_file


class _Files:
    """Checks files at a time. `folder`: names are relative to it."""

    def __init__(self, folder: Path, now: float) -> None:
        self._folder = folder
        self._now = now

    def of_listener(
        self, name: str, tls: model.ListenerTls, authorities: Sequence[Path]
    ) -> Iterator[Finding]:
        """Yield the findings for the files of a listener. `authorities`: files of the authorities
        that the configuration names."""
        for certificate in tls.certificates:
            yield from self._pair(certificate, f"shown by {name}", authorities)
        if tls.client_ca_file is not None:
            yield from self._authorities(tls.client_ca_file, f"for clients of {name}")
            yield from self._lists(tls.client_ca_file, tls.crl_files, f"for clients of {name}")

    def of_cluster(self, name: str, tls: model.ClusterTls) -> Iterator[Finding]:
        """Yield the findings for the files of a cluster."""
        if tls.ca_file is not None:
            yield from self._authorities(tls.ca_file, f"for brokers of {name}")
        if tls.certificate is not None:
            yield from self._pair(tls.certificate, f"shown to brokers of {name}", None)

    def _pair(
        self, files: model.Certificate, use: str, authorities: Sequence[Path] | None
    ) -> Iterator[Finding]:
        """Check a certificate and its key. `authorities`: None if the certificate is for brokers,
        which know its authority, and verify no host."""
        pair = KeyPair(files.certificate_file, files.key_file)
        check, key = (display_path(path, self._folder) for path in pair)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            load_pair(context, pair)
            chain = certificates_of(pair.certificate)
        except ConfigurationError as error:
            yield file_error(key if str(pair.key) in str(error) else check, error)
            return
        facts = [facts_of(certificate) for certificate in chain]
        yield judge_certificate(check, facts, use, self._now)
        if authorities is not None:
            known = _is_known(chain, authorities, context)
            findings = judge_names(check, facts[0]), judge_chain(check, facts[0], known=known)
            yield from (finding for finding in findings if finding is not None)
        yield check_rights(key, pair.key, f"the key of {check}", SECRET)

    def _authorities(self, path: Path, use: str) -> Iterator[Finding]:
        check = display_path(path, self._folder)
        try:
            held = [facts_of(certificate) for certificate in certificates_of(path)]
        except ConfigurationError as error:
            yield file_error(check, error)
            return
        yield judge_authorities(check, held, use, self._now)

    def _lists(self, authorities: Path, paths: Iterable[Path], use: str) -> Iterator[Finding]:
        lists: list[ListFacts] = []
        for path in paths:
            check = display_path(path, self._folder)
            try:
                lists.append(list_facts_of(revocations_of(path)))
            except ConfigurationError as error:
                yield file_error(check, error)
                return
            yield judge_list(check, lists[-1], use, self._now)
        try:
            signing = [facts_of(certificate) for certificate in certificates_of(authorities)]
        except ConfigurationError:
            return  # it has its own row
        missing = judge_missing_lists(display_path(authorities, self._folder), signing, lists)
        if missing is not None:
            yield missing


def _is_known(
    chain: Sequence[x509.Certificate], authorities: Iterable[Path], context: ssl.SSLContext
) -> bool:
    """Return whether the issuer of the first certificate is behind it, among the authorities that
    the configuration names, or among those of this machine. `context`: has the certificate."""
    leaf, *others = chain
    if any(is_issued_by(leaf, other) for other in others):
        return True
    for path in authorities:
        try:
            if any(is_issued_by(leaf, authority) for authority in certificates_of(path)):
                return True
        except ConfigurationError:
            continue  # it has its own row
    return is_trusted_here(context)
