"""Recommended limits that are enforced from now on."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from gateway.errors import ConfigurationError
from gateway.pipeline.limits.deciding import Limit, Seen, What
from gateway.pipeline.limits.texts import write
from gateway.pipeline.limits.writing import document, identifier
from gateway.rules import files
from gateway.rules.promoting import Promotion, promote

NOW, UNTIL = datetime(2026, 11, 24, 12, tzinfo=UTC), date(2026, 12, 24)

ID = identifier("acme", What.PUBLISH_MESSAGES)
PROMOTED = ID.replace("recommended.", "promoted.")


def recommended(folder: Path, rate: int = 1500) -> Path:
    """Write recommendations for two tenants; return the file."""
    path = folder / "rules" / "recommended" / "tenants.yaml"
    seen = [Seen(it, What.PUBLISH_MESSAGES, 10, 99, 900, 1000, 1100, 0) for it in ("acme", "best")]
    write(path, document([Limit(it, rate, 200) for it in seen], UNTIL))
    return path


def test_a_promoted_rule_is_enforced_and_keeps_its_evidence(tmp_path: Path) -> None:
    source, target = recommended(tmp_path), tmp_path / "rules" / "promoted.yaml"
    assert "is added" in promote(Promotion(ID, source, target), NOW)
    (rule,) = files.rules_of(files.load([target]))
    assert (rule.id, rule.mode) == (PROMOTED, "enforce")
    assert "  # usual 900/s" in target.read_text()
    assert "  # promoted 2026-11-24" in target.read_text()
    both = files.rules_of(files.load([target, source]))
    assert [it.mode for it in both] == ["enforce", "shadow", "shadow"]


def test_a_newer_recommendation_takes_the_place_of_the_older(tmp_path: Path) -> None:
    source, target = recommended(tmp_path), tmp_path / "promoted.yaml"
    promote(Promotion(ID, source, target), NOW)
    recommended(tmp_path, rate=3000)
    assert "is replaced" in promote(Promotion(ID, source, target), NOW)
    (rule,) = files.rules_of(files.load([target]))
    assert [value for _, value in rule.limits] == [3000.0]


def test_promoted_rules_stand_in_the_order_of_their_ids(tmp_path: Path) -> None:
    source, target = recommended(tmp_path), tmp_path / "promoted.yaml"
    other = identifier("best", What.PUBLISH_MESSAGES)
    for id in (other, ID):
        promote(Promotion(id, source, target), NOW)
    assert [it.id for it in files.rules_of(files.load([target]))] == [
        PROMOTED,
        other.replace("recommended.", "promoted."),
    ]


def test_an_unknown_rule_is_an_error_that_names_the_others(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=f"has no rule x; one of {ID}, "):
        promote(Promotion("x", recommended(tmp_path), tmp_path / "promoted.yaml"), NOW)


def test_an_old_recommendation_is_not_promoted(tmp_path: Path) -> None:
    asked = Promotion(ID, recommended(tmp_path), tmp_path / "promoted.yaml")
    with pytest.raises(ConfigurationError, match="expired at 2026-12-25T00:00:00Z; run gateway"):
        promote(asked, datetime(2026, 12, 25, tzinfo=UTC))
    assert not asked.target.exists()
    promote(asked, datetime(2026, 12, 24, 23, 59, 59, tzinfo=UTC))


def test_a_promoted_rule_expires_only_if_that_is_asked_for(tmp_path: Path) -> None:
    source, target = recommended(tmp_path), tmp_path / "promoted.yaml"
    assert "it never expires" in promote(Promotion(ID, source, target), NOW)
    (rule,) = files.rules_of(files.load([target]))
    assert rule.expires is None
    end = datetime(2026, 12, 1, tzinfo=UTC)
    told = promote(Promotion(ID, source, target, end), NOW)
    assert "it expires at 2026-12-01T00:00:00Z" in told
    (rule,) = files.rules_of(files.load([target]))
    assert rule.expires == end
    with pytest.raises(ConfigurationError, match="--expires 2026-12-01T00:00:00Z is over"):
        promote(Promotion(ID, source, target, end), end)


def test_a_rule_that_is_enforced_cannot_be_promoted(tmp_path: Path) -> None:
    source, target = recommended(tmp_path), tmp_path / "promoted.yaml"
    promote(Promotion(ID, source, target), NOW)
    with pytest.raises(ConfigurationError, match="is no shadow"):
        promote(Promotion(PROMOTED, target, tmp_path / "x.yaml"), NOW)


def test_a_wrong_file_is_an_error_with_its_line(tmp_path: Path) -> None:
    source = recommended(tmp_path)
    source.write_text(source.read_text().replace("1500/s", "fast"))
    with pytest.raises(ConfigurationError, match=r"tenants.yaml:\d+"):
        promote(Promotion(ID, source, tmp_path / "promoted.yaml"), NOW)
