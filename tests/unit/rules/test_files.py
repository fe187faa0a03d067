"""Which files of rules are read, and the mistakes that are reported."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.errors import ConfigurationError
from gateway.policy.dimensions import Dimension
from gateway.rules.files import check, load, rules_of

ROOT = Path(__file__).resolve().parents[3]


def text(*ids: str, limit: str = "{lookups: 1/s}") -> str:
    return "version: 1\nrules:\n" + "".join(f"  - {{id: {id}, limit: {limit}}}\n" for id in ids)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return Path("rules")


@pytest.fixture
def write(folder: Path) -> Path:
    """Write a folder with two files of rules and other entries."""
    (folder / "below").mkdir(parents=True)
    (folder / "folder.yaml").mkdir()
    (folder / "b.yml").write_text(text("b1", "b2"))
    (folder / "a.yaml").write_text(text("a1"))
    (folder / "notes.txt").write_text("no rules")
    (folder / "below" / "c.yaml").write_text(text("c1"))
    return folder


def mistakes(*paths: Path) -> list[str]:
    with pytest.raises(ConfigurationError) as caught:
        load(paths, {})
    return str(caught.value).splitlines()


@pytest.mark.usefixtures("write")
def test_all_files_of_a_folder_are_one_set() -> None:
    files = load([Path("rules")])
    assert [it.id for it in rules_of(files)] == ["a1", "b1", "b2"]
    assert list(check([Path("rules")], 0.0)) == [
        "rules/a.yaml: ok (1 rule)",
        "rules/b.yml: ok (2 rules)",
    ]


@pytest.mark.usefixtures("write")
def test_a_file_named_twice_is_read_once() -> None:
    files = load([Path("rules"), Path("rules/a.yaml"), Path("rules/below")])
    assert [it.id for it in rules_of(files)] == ["a1", "b1", "b2", "c1"]


def test_mistakes_of_all_files_are_reported_at_once(write: Path) -> None:
    (write / "a.yaml").write_text(text("a1", limit="{lookups: 1}"))
    (write / "b.yml").write_text("version: 1\nrules: ]")
    (write / "c.yaml").write_text(text("b c"))
    told = mistakes(write, Path("missing"), write / "folder.yaml")
    assert [line.partition(": ")[0] for line in told] == [
        "rules/folder.yaml",
        "rules/b.yml:2",
        "missing",
        "rules/a.yaml:3",
        "rules/c.yaml:3",
    ]


def test_an_id_may_occur_once_in_all_files(write: Path) -> None:
    (write / "b.yml").write_text(text("b1", "a1"))
    assert mistakes(write) == [
        "rules/b.yml:4: rules[1].id: is also the id of rules[0] in rules/a.yaml; choose another"
    ]


def test_a_repeated_id_is_reported_beside_other_mistakes(write: Path) -> None:
    (write / "b.yml").write_text(text("b1", "a1", limit="{}"))
    assert len(mistakes(write)) == 3


def test_environment_variables_are_replaced(write: Path) -> None:
    path = write / "a.yaml"
    path.write_text(text("a", limit="{lookups: '${RATE}'}"))
    (file,) = load([path], {"RATE": "7/s"})
    assert dict(file.rules[0].limits) == {Dimension.LOOKUPS: 7}
    with pytest.raises(ConfigurationError, match=r"\(the value comes from RATE\)"):
        load([path], {"RATE": "7"})


@pytest.mark.parametrize("path", sorted((ROOT / "rules").iterdir()), ids=lambda path: path.name)
def test_each_example_is_valid(path: Path) -> None:
    assert load([path], {})[0].rules


def test_the_examples_form_one_set() -> None:
    ids = [it.id for it in rules_of(load([ROOT / "rules"], {}))]
    assert len(ids) >= 8
