"""Findings from the facts of certificates, authorities and lists of revoked ones, at a time."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest
from cryptography import x509

from gateway.doctor.certificates import (
    LONGEST_NAME,
    Facts,
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
    listed,
)
from gateway.doctor.files import DAY
from gateway.doctor.finding import Finding, Status
from tests.support.certificates import CertificateAuthority, Wanted, self_signed

NOW = 1_800_000_000.0  # 2027-01-15 08:00 UTC
YEAR = 365 * DAY


def facts(
    begins: float = -YEAR,
    ends: float = YEAR,
    subject: str = "gateway",
    names: tuple[str, ...] = ("a.example", "192.0.2.1"),
) -> Facts:
    """Return facts whose dates are seconds from now."""
    return Facts(subject, "the authority", names, NOW + begins, NOW + ends)


def judged(*chain: Facts) -> Finding:
    return judge_certificate("tls.crt", chain, "shown by edge", NOW)


# -- certificates ----------------------------------------------------------------------------


def test_a_valid_certificate_shows_its_hosts_and_its_end() -> None:
    found = judged(facts())
    assert found.status is Status.OK
    assert found.detail == "for a.example, 192.0.2.1, until 2028-01-15 08:00 UTC; shown by edge"


@pytest.mark.parametrize(
    ("begins", "ends", "status", "detail"),
    [
        (-YEAR, -DAY, Status.FAIL, "expired since 2027-01-14 08:00 UTC"),
        (DAY, YEAR, Status.FAIL, "not valid before 2027-01-16 08:00 UTC"),
        (-YEAR, 29 * DAY, Status.WARN, "expires soon: 2027-02-13 08:00 UTC"),
        (-YEAR, 31 * DAY, Status.OK, "until 2027-02-15 08:00 UTC"),
    ],
)
def test_dates_decide(begins: float, ends: float, status: Status, detail: str) -> None:
    found = judged(facts(begins, ends))
    assert found.status is status
    assert detail in found.detail


@pytest.mark.parametrize(("ends", "status"), [(3 * DAY, Status.OK), (1.5 * DAY, Status.WARN)])
def test_a_certificate_of_six_days_expires_soon_in_its_last_two(
    ends: float, status: Status
) -> None:
    assert judged(facts(ends - 6 * DAY, ends)).status is status


def test_an_expired_certificate_behind_the_first_fails_and_is_named() -> None:
    found = judged(facts(), facts(ends=-DAY, subject="intermediate"))
    assert found.status is Status.FAIL
    assert "behind it intermediate, expired since 2027-01-14" in found.detail


def test_without_host_names_the_subject_is_shown_and_clients_are_warned() -> None:
    leaf = facts(names=())
    assert judged(leaf).detail.startswith("of gateway, until")
    found = judge_names("tls.crt", leaf)
    assert found is not None
    assert found.status is Status.WARN
    assert "subjectAltName=DNS:" in found.example
    assert judge_names("tls.crt", facts()) is None


def test_many_names_are_cut() -> None:
    assert listed([f"h{number}" for number in range(7)]) == "h0, h1, h2, h3, h4 and 2 more"
    assert len(listed(["h" * 9_000])) == LONGEST_NAME


# -- the chain -------------------------------------------------------------------------------


def test_a_missing_intermediate_authority_is_a_warning() -> None:
    found = judge_chain("tls.crt", replace(facts(), issuer_at="http://ca.example/1"), known=False)
    assert found is not None
    assert found.status is Status.WARN
    assert "does not hold the certificate of the authority, who signed it" in found.detail
    assert "http://ca.example/1" in found.remedy


def test_an_authority_that_clients_trust_themselves_is_no_warning() -> None:
    found = judge_chain("tls.crt", facts(), known=False)
    assert found is not None
    assert found.status is Status.OK
    assert found.detail.endswith("clients have to trust it")


@pytest.mark.parametrize("place", ["http://ca.example/1", ""])
def test_a_certificate_says_where_its_issuer_is_or_does_not(place: str) -> None:
    issued = CertificateAuthority().issue(Wanted(names=["a.example"], issuer_at=place))
    assert facts_of(x509.load_pem_x509_certificate(issued.certificate)).issuer_at == place


def test_a_known_issuer_and_a_self_signed_certificate_need_no_more() -> None:
    assert judge_chain("tls.crt", facts(), known=True) is None
    own = Facts("a", "a", ("a",), 0, YEAR, is_own_issuer=True)
    assert judge_chain("tls.crt", own, known=False) is None


# -- authorities -----------------------------------------------------------------------------


def test_the_only_authority_decides() -> None:
    found = judge_authorities("ca.crt", [facts(ends=-DAY)], "for clients of edge", NOW)
    assert found.status is Status.FAIL
    assert found.detail.endswith("; for clients of edge; expired: gateway")


def test_one_expired_authority_of_several_is_a_warning() -> None:
    held = [facts(), facts(ends=-DAY, subject="old")]
    found = judge_authorities("ca.crt", held, "for clients of edge", NOW)
    assert found.status is Status.WARN
    assert found.detail.startswith("2 authorities, the first to end old, until 2027-01-14")


@pytest.mark.parametrize(
    ("begins", "ends", "status"),
    [(-YEAR, YEAR, Status.OK), (-YEAR, DAY, Status.WARN), (DAY, YEAR, Status.FAIL)],
)
def test_an_authority_has_dates_too(begins: float, ends: float, status: Status) -> None:
    assert judge_authorities("ca.crt", [facts(begins, ends)], "x", NOW).status is status


# -- lists of revoked certificates -----------------------------------------------------------


@pytest.mark.parametrize(
    ("begins", "due", "status", "detail"),
    [
        (-DAY, 6 * DAY, Status.OK, "the next is due 2027-01-21 08:00 UTC"),
        (-6 * DAY, DAY / 2, Status.WARN, "the next is due soon: 2027-01-15 20:00 UTC"),
        (-6 * DAY, -DAY, Status.FAIL, "every client's certificate of the authority is refused"),
        (DAY, 6 * DAY, Status.FAIL, "not valid before 2027-01-16 08:00 UTC"),
        (-DAY, inf, Status.OK, "certificates that the authority revoked; x"),
    ],
)
def test_a_list_must_not_be_older_than_the_next(
    begins: float, due: float, status: Status, detail: str
) -> None:
    held = ListFacts("the authority", NOW + begins, NOW + due)
    found = judge_list("revoked.crl", held, "x", NOW)
    assert found.status is status
    assert found.detail.endswith(detail)


def test_an_authority_without_a_list_is_a_warning_where_others_have_one() -> None:
    lists = [ListFacts("gateway", 0, inf)]
    both = [facts(), facts(subject="second")]
    found = judge_missing_lists("ca.crt", both, lists)
    assert found is not None
    assert "no list in crl_files is of second" in found.detail
    assert judge_missing_lists("ca.crt", both[:1], lists) is None
    assert judge_missing_lists("ca.crt", both, []) is None


# -- reading ---------------------------------------------------------------------------------


def test_facts_are_read_from_certificates() -> None:
    authority = CertificateAuthority()
    issued = authority.issue(Wanted(["A.example", "::1"], common="gateway"))
    leaf, root = map(x509.load_pem_x509_certificate, (issued.certificate, authority.certificate))
    found = facts_of(leaf)
    assert (found.subject, found.issuer) == ("gateway", "test authority")
    assert found.names == ("a.example", "::1")
    assert not found.is_own_issuer
    assert facts_of(root).is_own_issuer
    assert is_issued_by(leaf, root)
    assert not is_issued_by(root, leaf)
    own = x509.load_pem_x509_certificate(self_signed("b.example").certificate)
    assert facts_of(own).is_own_issuer


def test_facts_are_read_from_lists() -> None:
    held = list_facts_of(x509.load_pem_x509_crl(CertificateAuthority().revoke()))
    assert held.issuer == "test authority"
    assert held.begins < held.next < inf
