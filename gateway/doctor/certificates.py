"""Reads the facts of certificates, and makes findings from them, without I/O.

The certificates come from the files that a configuration names (`tls_files`), or from peers
(`handshakes`, `insecure`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import inf

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.x509.oid import AuthorityInformationAccessOID, ExtensionOID, NameOID

from gateway.doctor.files import DAY, format_date
from gateway.doctor.finding import Finding, fail, ok, warn

SOON = 30 * DAY
"""Seconds before its end at which a certificate expires soon. Automatic renewal has happened by
then; people need days."""

_LAST_PART = 1 / 3
"""Certificates that live for less than 90 days are renewed in the last third of their life."""

_LAST_PART_OF_LIST = 1 / 10
"""Lists of revoked certificates live for days, and each is followed by the next in time."""

LONGEST_NAME = 100
"""Characters that are shown of a name, which a peer chooses. Common names have 64 at most."""

MOST_NAMES = 5
"""Names that are shown of a certificate, which may have hundreds."""


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts of a certificate. `subject`, `issuer`: the common name, or the whole distinguished
    name if it has no common name. `names`: the hosts and IP addresses for which the certificate is
    valid. `begins`, `ends`: the time of its validity, in seconds since 1970. `is_own_issuer`: the
    certificate is self-signed. `issuer_at`: the URL of the issuer's certificate, if the certificate
    names it (RFC 5280, 4.2.2.1, `caIssuers`); otherwise empty."""

    subject: str
    issuer: str
    names: tuple[str, ...]
    begins: float
    ends: float
    is_own_issuer: bool = False
    issuer_at: str = ""


@dataclass(frozen=True, slots=True)
class ListFacts:
    """The facts of a list of revoked certificates (CRL). `begins`: when the list was issued.
    `next`: when the next list is due; `inf` if the list does not say. Both are seconds since 1970.
    """

    issuer: str
    begins: float
    next: float


def facts_of(certificate: x509.Certificate) -> Facts:
    """Return the names and dates in a certificate."""
    return Facts(
        subject=_shown(certificate.subject),
        issuer=_shown(certificate.issuer),
        names=_names_of(certificate),
        begins=certificate.not_valid_before_utc.timestamp(),
        ends=certificate.not_valid_after_utc.timestamp(),
        is_own_issuer=is_issued_by(certificate, certificate),
        issuer_at=_issuer_at(certificate),
    )


def _issuer_at(certificate: x509.Certificate) -> str:
    """Return the first URL at which the certificate of the issuer is, as this certificate says;
    empty if it names none."""
    try:
        places = certificate.extensions.get_extension_for_class(x509.AuthorityInformationAccess)
    except (x509.ExtensionNotFound, ValueError):
        return ""
    issuers = (
        place.access_location.value
        for place in places.value
        if place.access_method == AuthorityInformationAccessOID.CA_ISSUERS
        and isinstance(place.access_location, x509.UniformResourceIdentifier)
    )
    return next(issuers, "")[:LONGEST_NAME]


def is_issued_by(certificate: x509.Certificate, issuer: x509.Certificate) -> bool:
    """Return whether `issuer` signed `certificate`."""
    try:
        certificate.verify_directly_issued_by(issuer)
    except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
        return False
    return True


def list_facts_of(revocations: x509.CertificateRevocationList) -> ListFacts:
    """Return the issuer and the dates of a list of revoked certificates."""
    due = revocations.next_update_utc
    return ListFacts(
        _shown(revocations.issuer),
        revocations.last_update_utc.timestamp(),
        inf if due is None else due.timestamp(),
    )


def _shown(name: x509.Name) -> str:
    common = name.get_attributes_for_oid(NameOID.COMMON_NAME)
    shown = str(common[0].value) if common else name.rfc4514_string()
    return shown[:LONGEST_NAME] or "nobody"


def _names_of(certificate: x509.Certificate) -> tuple[str, ...]:
    try:
        extension = certificate.extensions.get_extension_for_oid(
            ExtensionOID.SUBJECT_ALTERNATIVE_NAME
        ).value
    except (x509.ExtensionNotFound, ValueError):
        return ()
    assert isinstance(extension, x509.SubjectAlternativeName)
    hosts = [name.lower() for name in extension.get_values_for_type(x509.DNSName)]
    return (*hosts, *map(str, extension.get_values_for_type(x509.IPAddress)))


# -- texts -----------------------------------------------------------------------------------


def listed(names: Collection[str]) -> str:
    """Return the first `MOST_NAMES` of the names as a text, and the number of names that are left
    out."""
    shown = ", ".join(name[:LONGEST_NAME] for name in list(names)[:MOST_NAMES])
    others = len(names) - MOST_NAMES
    return f"{shown} and {others} more" if others > 0 else shown


def describe(facts: Facts) -> str:
    """Return a text with the hosts of a certificate, or its subject if it has no hosts, and with
    the end of its validity."""
    whose = f"for {listed(facts.names)}" if facts.names else f"of {facts.subject}"
    return f"{whose}, until {format_date(facts.ends)}"


# -- dates -----------------------------------------------------------------------------------


def ends_soon(facts: Facts, now: float) -> bool:
    """Return whether a certificate expires so soon that it should have been renewed. `now`: seconds
    since 1970."""
    return facts.ends - now < min(SOON, (facts.ends - facts.begins) * _LAST_PART)


def judge_certificate(check: str, chain: Sequence[Facts], use: str, now: float) -> Finding:
    """Return the finding about the validity of the certificates in one file. `check`: the file's
    path. `chain`: the certificates; the first is the peer's own, the others its authorities'.
    `use`: what the file is for, such as "shown by edge"."""
    wrong = [
        certificate for certificate in chain if not certificate.begins <= now <= certificate.ends
    ]
    first = min(wrong or chain, key=lambda certificate: certificate.ends)
    detail = f"{describe(chain[0])}; {use}"
    if first is not chain[0]:
        detail = f"{detail}; behind it {first.subject}"
    if first.ends < now:
        return fail(check, f"{detail}, expired since {format_date(first.ends)}", RENEW)
    if first.begins > now:
        return fail(check, f"{detail}, not valid before {format_date(first.begins)}", WAIT)
    if ends_soon(first, now):
        return warn(check, f"{detail}, expires soon: {format_date(first.ends)}", RENEW)
    return ok(check, f"{describe(chain[0])}; {use}")


RENEW = "Put a newer certificate and its key into the files; a running gateway reads them."
WAIT = "Wait for it, or set this machine's clock right."


def judge_authorities(check: str, held: Sequence[Facts], use: str, now: float) -> Finding:
    """Return the finding about the validity of the authorities' certificates in one file. `check`:
    the file's path. `use`: what the file is for, such as "for clients of edge"."""
    first = min(held, key=lambda authority: authority.ends)
    whose = f"{first.subject}, until {format_date(first.ends)}"
    detail = whose if len(held) == 1 else f"{len(held)} authorities, the first to end {whose}"
    detail = f"{detail}; {use}"
    remedy = "Add their newer certificates to the file; a running gateway reads it."
    out = [authority for authority in held if authority.ends < now]
    if out:
        text = f"{detail}; expired: {listed([authority.subject for authority in out])}"
        return (fail if len(out) == len(held) else warn)(check, text, remedy)
    if all(authority.begins > now for authority in held):
        begins = format_date(min(authority.begins for authority in held))
        return fail(check, f"{detail}; not valid before {begins}", WAIT)
    if ends_soon(first, now):
        return warn(check, f"{detail}; expires soon", remedy)
    return ok(check, detail)


def judge_list(check: str, held: ListFacts, use: str, now: float) -> Finding:
    """Return the finding about the dates of one list of revoked certificates. `check`: its
    file's path. `use`: what it is for."""
    detail = f"certificates that {held.issuer} revoked; {use}"
    remedy = "Fetch the authority's next list into the file; a running gateway reads it."
    if held.next < now:
        due = format_date(held.next)
        text = f"the next was due {due}: every client's certificate of {held.issuer} is refused"
        return fail(check, f"{detail}; {text}", remedy)
    if held.begins > now:
        return fail(check, f"{detail}; not valid before {format_date(held.begins)}", WAIT)
    if held.next == inf:
        return ok(check, detail)
    if held.next - now < (held.next - held.begins) * _LAST_PART_OF_LIST:
        return warn(check, f"{detail}; the next is due soon: {format_date(held.next)}", remedy)
    return ok(check, f"{detail}; the next is due {format_date(held.next)}")


# -- the rest --------------------------------------------------------------------------------


def judge_names(check: str, leaf: Facts) -> Finding | None:
    """Return a warning if a certificate names no host, so that clients cannot verify it; otherwise
    None."""
    if leaf.names:
        return None
    return warn(
        check,
        "names no host as subjectAltName: clients that verify hosts refuse it",
        "Have it made with the names and addresses by which clients connect:",
        "subjectAltName=DNS:gateway.example,IP:192.0.2.1",
    )


def judge_chain(check: str, leaf: Facts, *, known: bool) -> Finding | None:
    """Return a finding if a file does not contain the certificate of the authority that signed its
    first certificate; otherwise None. `known`: that authority is in the file, or is known on this
    machine.

    A certificate that names the URL of its issuer's comes from an intermediate authority as a rule,
    and clients need that one too. Companies mostly sign with the authority that clients trust.
    """
    if known or leaf.is_own_issuer:
        return None
    if not leaf.issuer_at:
        return ok(check, f"signed by {leaf.issuer}, not in the file: clients have to trust it")
    return warn(
        check,
        f"does not hold the certificate of {leaf.issuer}, who signed it: clients that do not have "
        "that one fail",
        f"Add it behind the first one in the file; it is at {leaf.issuer_at}",
    )


def judge_missing_lists(
    check: str, authorities: Sequence[Facts], lists: Sequence[ListFacts]
) -> Finding | None:
    """Return a warning if some authorities have a list of revoked certificates and other
    authorities have none; otherwise None. OpenSSL refuses all certificates that the authorities
    without a list have signed."""
    having = {facts.issuer for facts in lists}
    without = [authority.subject for authority in authorities if authority.subject not in having]
    if not lists or not without:
        return None
    return warn(
        check,
        f"no list in crl_files is of {listed(without)}: every certificate that it signed is "
        "refused",
        "Add its list to crl_files, unless it signs other authorities alone.",
    )
