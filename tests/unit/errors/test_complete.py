"""Every error text for people has a case that causes it, and each remedy of the page a text."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from hypothesis import example, given
from hypothesis import strategies as st

from gateway.brokers.names import TemplateNames
from gateway.brokers.targets import TargetList
from gateway.config import units
from tests.docs import errors
from tests.support.faults import assert_none
from tests.unit.errors import limits, spark
from tests.unit.errors.test_errors import CASES, STARTS
from tests.unit.errors.texts import Text, texts

MESSAGES = [
    *(case.message for case in [*CASES, *limits.CASES]),
    *(start.message for start in STARTS),
    *spark.MESSAGES,
]
LINES = sorted({line for message in MESSAGES for line in message.splitlines()})

TEXTS = texts()

UNREACHED = {
    # The model of the file finds the same, with its line; tested below.
    "gateway/brokers/names.py": ("Sealed", "The cluster", "The advertised", "The template"),
    "gateway/brokers/targets.py": ("The allowed target",),
    # The model of rules finds the same.
    "gateway/policy/gcra.py": ("a meter needs",),
    # All protocols have all actions; see `test_protocols`.
    "gateway/policy/rules.py": ("limits .* of .*, which",),
    "gateway/identity/token.py": (
        "Verifying tokens needs",
        "Token algorithms",
        "not a NumericDate",  # of a client's token, not of the configuration
    ),
    # Who makes a line gives the name.
    "gateway/identity/scram.py": ("a name with",),
    # Reasons why keys cannot be fetched, which are logged while the gateway serves.
    "gateway/verifiers/fetching.py": (".*", "no answer in time"),
    # It takes a file that changes between two reads.
    "gateway/tls/files.py": ("OpenSSL cannot load",),
}
"""Beginnings of texts that no file and no start can cause: packages check their own input too."""


# -- texts and cases -------------------------------------------------------------------------------


def _is_unreached(text: Text) -> bool:
    literal = text.pattern.replace("\\", "")
    begins = UNREACHED.get(text.where.partition(":")[0], ())
    return any(literal.startswith(begin or ".*") for begin in begins)


def test_each_text_is_caused_by_a_case() -> None:
    assert_none(
        f"{it.where}: {it.pattern}: {'remove it from UNREACHED' if told else 'no case causes it'}"
        for it in TEXTS
        for told in [any(map(it.tells, MESSAGES))]
        if told == _is_unreached(it)
    )


def test_texts_are_found_in_all_places() -> None:
    rooms = {Path(text.where.partition(":")[0]).parts[1] for text in TEXTS}
    assert rooms == {
        *("config", "identity", "verifiers", "brokers", "policy"),
        *("listening", "fleet", "tls", "handing.py"),
    }


ANY = st.text("ab0.-_:*%[]/{n} ", max_size=20)
TEMPLATES = st.builds("{}{{n}}{}".format, ANY, ANY)


def _accepted(read: Callable[[object], str], written: str) -> str | None:
    try:
        return read(written)
    except ValueError:
        return None


@given(ANY)
def test_a_target_host_accepted_by_the_model_is_accepted_later(written: str) -> None:
    host = _accepted(units.host_pattern, written)
    assert host is None or TargetList(hosts=[host]).describe().startswith(f"hosts: {host};")


@given(ANY)
def test_a_broker_accepted_by_the_model_is_a_target(written: str) -> None:
    try:
        broker = units.broker(f"pulsar://{written}")
    except ValueError:
        return
    assert TargetList.of([broker]).check(broker.host, "192.0.2.1", broker.port) is None


@given(TEMPLATES, TEMPLATES)
@example("{n}", "{n}::")
def test_templates_accepted_by_the_model_are_accepted_later(name: str, broker: str) -> None:
    advertised = _accepted(units.host_template, name) or "b-{n}"
    address = _accepted(units.broker_template, f"{broker}:1") or "p-{n}:1"
    assert TemplateNames(advertised, address)


# -- the page --------------------------------------------------------------------------------------

_PLACE = re.compile(r"(?:gateway|rules)\.yaml:\d+: (?:[\w.\[\]]+: )?")
_ORIGIN = re.compile(r" \(the value comes from [\w, ]+\)")


def _text(line: str) -> str:
    """Return a line without its place, as on the page."""
    return _ORIGIN.sub("", _PLACE.sub("", line))


TOLD = [_text(line) for line in LINES]
REMEDIES = [it for section in errors.SECTIONS for it in section.remedies]


def test_each_remedy_is_for_a_message_of_the_code() -> None:
    assert_none(it.message for it in REMEDIES if not any(map(it.is_for, TOLD)))


def test_a_message_has_one_remedy_at_most() -> None:
    assert_none(
        f"{text}: {', '.join(rows)}"
        for text in TOLD
        for rows in [[it.message for it in REMEDIES if it.is_for(text)]]
        if len(rows) > 1
    )


def test_the_message_that_is_shown_as_an_example_is_one_of_the_code() -> None:
    assert _text(errors.EXAMPLE) in TOLD


def test_the_page_of_errors_is_generated() -> None:
    assert errors.PAGE.read_text(encoding="utf-8") == errors.written(), "make metrics"
