"""The configurations of scenes, and the evaluation of reports by the matrix."""

import json
from pathlib import Path

import pytest

from tests.real.configurations import FEATURES, PLAIN, ROTATION, configured, features, rotated
from tests.support.differences import DIRECT, Results, Verdict

from .__main__ import CONFIGURATIONS, Line, main, parsed

REPORT = """<testsuites><testsuite>
<testcase name="test_a[go-run3]" file="tests/shared/test_x.py" />
<testcase name="test_a[go-run4]" file="tests/shared/test_x.py"><failure /></testcase>
<testcase name="test_b[run0]" file="tests/shared/test_x.py"><error /></testcase>
<testcase name="test_c" file="tests/real/test_y.py"><skipped /></testcase>
</testsuite></testsuites>"""


def test_a_configuration_has_the_features_in_its_name() -> None:
    plan = configured("mask+far+workers", None)
    assert (plan.unknown, plan.rules and plan.rules.name, plan.workers) == ("mask", "far.yaml", 2)
    assert features(PLAIN) == []


@pytest.mark.parametrize("name", ["fra", "mask+mask", "far+near", "plain+far", ""])
def test_a_malformed_name_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"feature|far and near"):
        features(name)


def test_tokens_cannot_be_verified_without_a_secret() -> None:
    with pytest.raises(ValueError, match="tokens"):
        configured("verify", None)


def test_the_matrix_has_all_combinations() -> None:
    assert len(set(CONFIGURATIONS)) == 48
    assert {feature for name in CONFIGURATIONS for feature in features(name)} == set(FEATURES)


def test_scenes_alternate_between_all_other_configurations() -> None:
    assert {rotated(f"test_{number}") for number in range(200)} == set(ROTATION)
    assert rotated("test_1") == rotated("test_1")


def test_a_report_contains_the_runs_of_each_scene() -> None:
    assert list(parsed(REPORT, "far")) == [
        Line("test_x::test_a[go]", "far", "passed"),
        Line("test_x::test_a[go]", "far", "failed"),
        Line("test_x::test_b", "far", "failed"),
        Line("test_y::test_c", "far", "skipped"),
    ]


def kept(folder: Path, *lines: tuple[str, str, Verdict]) -> str:
    """Return a file of results."""
    file = folder / "results.jsonl"
    content = [{"scene": scene, "way": way, "verdict": what} for scene, way, what in lines]
    file.write_text("\n".join(map(json.dumps, content)))
    return str(file)


@pytest.mark.parametrize(
    ("directly", "through", "status"),
    [
        (Verdict.PASSED, Verdict.PASSED, 0),
        (Verdict.PASSED, Verdict.FAILED, 1),
        (Verdict.FAILED, Verdict.FAILED, 0),
        (Verdict.SKIPPED, Verdict.PASSED, 0),
    ],
)
def test_the_status_says_if_the_gateway_makes_a_difference(
    tmp_path: Path, directly: Verdict, through: Verdict, status: int
) -> None:
    file = kept(tmp_path, ("test_a", DIRECT, directly), ("test_a", "far", through))
    assert main(["--table", "--results", file]) == status


def test_the_table_counts_the_runs_of_a_test() -> None:
    results = Results((DIRECT, "far"))
    for verdict in (Verdict.PASSED, Verdict.FAILED, Verdict.UNFINISHED):
        results.add("test_a", "far", verdict)
    results.add("test_a", DIRECT, Verdict.PASSED)
    assert results.table(["test_a", "test_b"]).splitlines() == [
        "test    direct  far",
        "test_a  passed  1/3",
        "test_b  -       -",
    ]
    assert results.worse("far") == ["test_a"]
    assert results.totals() == "direct: 1 of 1 tests passed\nfar: 0 of 1 tests passed"
