"""Figures of listeners that clients have a say in."""

from __future__ import annotations

from gateway.telemetry.figures import LIBRARIES, LONGEST_LIBRARY, OTHER, ListenerFigures


def test_open_connections_are_counted_by_library() -> None:
    figures = ListenerFigures()
    names = [figures.opened(it) for it in ("a 1", "a 1", "b 2")]
    assert figures.libraries == {"a 1": 2, "b 2": 1}
    for name in names[1:]:
        figures.closed(name)
    assert figures.libraries == {"a 1": 1}


def test_libraries_beyond_the_bound_are_counted_together() -> None:
    figures = ListenerFigures()
    names = [figures.opened(f"invented {number}") for number in range(LIBRARIES + 5)]
    assert figures.libraries[OTHER] == 5
    assert len(figures.libraries) == LIBRARIES + 1
    for name in names:
        figures.closed(name)
    assert not figures.libraries


def test_a_library_may_be_stated_by_any_text() -> None:
    figures = ListenerFigures()
    assert len(figures.opened("x" * 10_000)) == LONGEST_LIBRARY
    figures.opened("half \ud800 of a pair").encode()


def test_handshakes_and_authentications_are_counted_by_kind() -> None:
    figures = ListenerFigures()
    figures.shaken("TLSv1.3", resumed=False)
    figures.shaken("TLSv1.3", resumed=True)
    figures.shaken("TLSv1.3", resumed=True)
    assert figures.handshakes == {("TLSv1.3", False): 1, ("TLSv1.3", True): 2}
    figures.authenticated("token", accepted=False)
    assert figures.authentications == {("token", False): 1}
