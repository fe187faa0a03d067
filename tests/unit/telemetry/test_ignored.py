"""Errors that no caller can catch are logged, and written nowhere else."""

from __future__ import annotations

import sys

import pytest
import structlog.testing

from gateway.telemetry.log import log_ignored


class Failing:
    """Fails where nobody can catch it."""

    def __del__(self) -> None:
        raise UnicodeDecodeError("ascii", b"\xff", 0, 1, "ordinal not in range")


def test_an_error_that_is_ignored_is_logged_once(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "unraisablehook", log_ignored)
    with structlog.testing.capture_logs() as lines:
        Failing()
    (line,) = lines
    assert (line["event"], line["log_level"]) == ("error_ignored", "warning")
    assert "UnicodeDecodeError" in line["error"]
    assert capfd.readouterr().err == ""
