"""Tries the TLS handshake of each listener: with the program that already listens at its address,
or in memory if none does."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from gateway.assembly import make_server_side
from gateway.config import model
from gateway.doctor import secured
from gateway.doctor.certificates import describe
from gateway.doctor.files import display_path
from gateway.doctor.finding import Finding, fail, ok, warn
from gateway.doctor.insecure import Agreed, Trouble, classify
from gateway.doctor.ports import reachable
from gateway.doctor.reach import Network, run_all
from gateway.doctor.rehearsal import rehearse, trusting
from gateway.errors import ConfigurationError
from gateway.tls.files import certificates_of, names_in
from gateway.tls.sides import ServerSide
from gateway.tls.stream import PIECE, Shared, TlsStream
from gateway.wire.address import Address


async def examine(
    configuration: model.Configuration, folder: Path, network: Network
) -> list[Finding]:
    """Try a handshake for each certificate of each listener; return the findings. `folder`: the
    folder of the configuration file."""
    tries = [
        partial(_examine_certificate, listener, certificate, folder, network)
        for listener in configuration.listeners
        if listener.tls is not None
        for certificate in listener.tls.certificates
    ]
    return [finding for finding in await run_all(tries) if finding is not None]


async def _examine_certificate(
    listener: model.Listener, files: model.Certificate, folder: Path, network: Network
) -> Finding | None:
    """Return the finding for one certificate; None if a file is wrong, which `tls_files`
    reports."""
    try:
        side = make_server_side(listener, Shared(PIECE))
        chain = certificates_of(files.certificate_file)
    except ConfigurationError:
        return None
    assert side is not None, "the listener has TLS"
    check = f"TLS of {listener.name}"
    file, host = display_path(files.certificate_file, folder), _asked_for(chain[0])
    for bind in listener.bind:
        answer = await _answered(reachable(bind), host, network) if bind.port else None
        if answer is not None:
            agreed, shown = answer
            is_same = shown == chain[0].public_bytes(Encoding.DER)
            return judge_answer(check, agreed, file, is_same=is_same)
    return judge_rehearsal(check, _rehearsed(side, chain, host), file)


async def _answered(address: Address, host: str, network: Network) -> tuple[Agreed, bytes] | None:
    """Return what a handshake with the program that listens agreed on, and that program's
    certificate; None if none listens, or it speaks no TLS, which `ports` reports."""
    stream = await secured.connect(network, address, secured.unverifying(host))
    if not isinstance(stream, TlsStream):
        return None
    try:
        return secured.agreed_of(stream), stream.certificate or b""
    finally:
        stream.close()


def _asked_for(certificate: x509.Certificate) -> str:
    """Return a host that a certificate is for; "localhost" if it names none."""
    names = names_in(certificate)
    return names[0].replace("*", "any") if names else "localhost"


def _rehearsed(side: ServerSide, chain: Sequence[x509.Certificate], host: str) -> Agreed | OSError:
    client = trusting(chain[-1].public_bytes(Encoding.PEM).decode("ascii"))
    try:
        return rehearse(side.stream, client, host)
    except OSError as error:
        return error


# -- findings --------------------------------------------------------------------------------


def judge_answer(check: str, agreed: Agreed, file: str, *, is_same: bool) -> Finding:
    """Return the finding about a handshake with the program that already listens at the listener's
    address. `is_same`: this program presents the certificate in `file`."""
    detail = f"answers with {agreed.version}, {agreed.cipher}"
    if is_same:
        return ok(check, f"{detail}, and {file}")
    other = "" if agreed.shown is None else f": one {describe(agreed.shown)}"
    return warn(
        check,
        f"{detail}, and another certificate than that in {file}{other}",
        "A gateway takes new files within seconds. If it does not, its log has the reason "
        "(tls_files_refused), or another program listens there.",
    )


def judge_rehearsal(check: str, outcome: Agreed | OSError, file: str) -> Finding:
    """Return the finding about a handshake in memory. `outcome`: what the handshake agreed on, or
    its error. `file`: the file of the listener's certificate."""
    if isinstance(outcome, Agreed):
        return ok(check, f"{file} works: {outcome.version}, {outcome.cipher}; nothing listens yet")
    failure = classify(outcome)
    if failure.trouble is Trouble.PURPOSE:
        return fail(
            check,
            f"{file} is not for servers: clients refuse it",
            "Have it made with the extended key usage serverAuth.",
        )
    return fail(
        check,
        f"no handshake succeeds with {file}: {failure.words}",
        "Clients would see the same. Have the certificate and its chain made anew.",
    )
