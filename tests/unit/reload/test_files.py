"""A file that is another one has another sign."""

from __future__ import annotations

from pathlib import Path

from gateway.reload.files import Sign, signs


def seen(*paths: Path) -> frozenset[Sign]:
    return frozenset(signs(paths))


def test_what_nobody_touched_has_the_same_signs(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("a")
    assert seen(tmp_path) == seen(tmp_path)
    assert len(seen(tmp_path)) == 1


def test_a_file_that_is_written_again_shows(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("a")
    before = seen(file)
    later(file, before)
    file.write_text("b")
    assert seen(file) != before


def test_a_file_in_the_place_of_another_shows(tmp_path: Path) -> None:
    """Of the same size."""
    file, other = tmp_path / "a.yaml", tmp_path / "new"
    for path in (file, other):
        path.write_text("a")
    before = seen(file)
    other.rename(file)
    assert seen(file) != before


def test_a_file_whose_rights_are_others_shows(tmp_path: Path) -> None:
    """It could not be read, and now it can."""
    file = tmp_path / "a.yaml"
    file.touch(mode=0o000)
    before = seen(file)
    later(file, before)
    file.chmod(0o644)
    assert seen(file) != before


def later(file: Path, before: frozenset[Sign]) -> None:
    """The clock of files has gone on since."""
    probe = file.with_name("probe")
    while True:
        probe.touch()
        if all(probe.stat().st_ctime_ns > sign[-1] for sign in before if len(sign) > 1):
            return


def test_one_file_more_or_less_in_a_folder_shows(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("a")
    before = seen(tmp_path)
    (tmp_path / "b.yml").write_text("b")
    assert seen(tmp_path) > before
    (tmp_path / "b.yml").unlink()
    assert seen(tmp_path) == before


def test_what_is_no_file_of_rules_does_not_show(tmp_path: Path) -> None:
    before = seen(tmp_path)
    (tmp_path / "a.yaml.swp").write_text("a")
    assert seen(tmp_path) == before


def test_a_link_far_above_that_leads_elsewhere_shows(tmp_path: Path) -> None:
    """So Kubernetes brings a ConfigMap."""
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.yaml").write_text("a")
    rules, data = tmp_path / "rules", tmp_path / "rules" / "..data"
    rules.mkdir()
    data.symlink_to(tmp_path / "old")
    (rules / "a.yaml").symlink_to(Path("..data") / "a.yaml")
    before = seen(rules)
    (tmp_path / "next").symlink_to(tmp_path / "new")
    (tmp_path / "next").rename(data)
    assert seen(rules) != before


def test_a_file_that_goes_shows_and_one_that_is_back_too(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("a")
    before = seen(file)
    file.unlink()
    gone = seen(file)
    assert gone != before
    file.write_text("a")
    assert seen(file) != gone
