"""Findings become a table to read, copy from, and search for FAIL."""

from __future__ import annotations

from gateway.doctor.finding import Section, Status, fail, nothing_failed, ok, skip, warn
from gateway.doctor.report import NARROWEST, WIDEST, table

GOOD = ok("broker a:6650", "Pulsar 4")
BAD = fail("name b", "does not resolve", "See that the name is right.", "getent hosts b")


def _table(*findings: object, width: int = 80, colour: bool = False) -> str:
    return table([Section("cluster main", findings)], width, colour=colour)  # type: ignore[arg-type]


def test_names_and_details_stand_in_columns() -> None:
    lines = _table(GOOD, BAD).splitlines()
    assert lines[0] == "cluster main"
    assert lines[1] == "  ok    broker a:6650  Pulsar 4"
    assert lines[2] == "  FAIL  name b         does not resolve"


def test_a_remedy_stands_below_and_its_example_is_not_wrapped() -> None:
    example = "targets: {hosts: [" + ", ".join(["broker.example"] * 9) + "]}"
    long = fail("x", "y", "do " * 40, example)
    lines = _table(long).splitlines()
    assert lines[2].startswith("        -> do do")
    assert all(len(line) <= 80 for line in lines[:-3])
    assert lines[-3] == "             " + example


def test_details_are_wrapped_under_themselves() -> None:
    lines = _table(ok("name", "word " * 30)).splitlines()
    assert lines[1].startswith("  ok    name  word")
    assert lines[2].startswith("              word")


def test_words_to_be_copied_stay_whole() -> None:
    path = "/etc/gateway/" + "very-long-name-" * 8
    assert path in _table(ok("file", f"see {path} there"))


def test_the_width_of_the_table_is_bounded() -> None:
    lines = ok("name", "word " * 60)
    assert _table(lines, width=1) == _table(lines, width=NARROWEST)
    assert _table(lines, width=1000) == _table(lines, width=WIDEST)


def test_an_empty_section_is_not_shown() -> None:
    shown = table([Section("files", ()), Section("ports", (GOOD,))], 80, colour=False)
    assert "files" not in shown


def test_the_last_line_counts() -> None:
    watch = warn("w", "d", "r")
    assert _table(GOOD).splitlines()[-1] == "1 ok, nothing fails"
    assert _table(GOOD, BAD).splitlines()[-1] == "1 ok, 1 does not work"
    every = _table(GOOD, BAD, BAD, watch, skip("s", "d"))
    assert every.splitlines()[-1] == "1 ok, 1 not tried, 1 to look at, 2 do not work"


def test_only_the_status_is_coloured_and_only_on_request() -> None:
    assert "\x1b" not in _table(GOOD, BAD)
    coloured = _table(GOOD, BAD, colour=True)
    assert "\x1b[1;31mFAIL\x1b[0m  name b" in coloured
    assert "\x1b[32mok  \x1b[0m  broker" in coloured


def test_only_a_failure_fails_the_result() -> None:
    assert nothing_failed([Section("a", (GOOD, warn("w", "d", "r"), skip("s", "d")))])
    assert not nothing_failed([Section("a", (GOOD,)), Section("b", (BAD,))])
    assert {it.value for it in Status} == {"ok", "skip", "warn", "FAIL"}


def test_a_peers_text_cannot_control_the_terminal() -> None:
    evil = "a\x1b[2J\nb"
    shown = _table(fail(evil, evil, evil, "targets: {hosts: [\x1b]}"))
    assert "\x1b" not in shown
    assert shown.count("a?[2J?b") == 3
