"""Signs of files change when the files do."""

from __future__ import annotations

from pathlib import Path

from gateway.reload.files import signs
from gateway.system.files import Sign


def seen(*paths: Path) -> frozenset[Sign]:
    return frozenset(signs(paths))


def test_untouched_files_keep_their_signs(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("a")
    assert seen(tmp_path) == seen(tmp_path)
    assert len(seen(tmp_path)) == 1


def test_rewriting_a_file_changes_its_sign(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("a")
    before = seen(file)
    later(file, before)
    file.write_text("b")
    assert seen(file) != before


def test_replacing_a_file_changes_its_sign(tmp_path: Path) -> None:
    """Both files have the same size."""
    file, other = tmp_path / "a.yaml", tmp_path / "new"
    for path in (file, other):
        path.write_text("a")
    before = seen(file)
    other.rename(file)
    assert seen(file) != before


def test_changing_permissions_changes_the_sign(tmp_path: Path) -> None:
    """A file that was not readable may now be."""
    file = tmp_path / "a.yaml"
    file.touch(mode=0o000)
    before = seen(file)
    later(file, before)
    file.chmod(0o644)
    assert seen(file) != before


def later(file: Path, before: frozenset[Sign]) -> None:
    """Wait until the file system's clock has advanced."""
    probe = file.with_name("probe")
    while True:
        probe.touch()
        if all(probe.stat().st_ctime_ns > sign[-1] for sign in before if len(sign) > 1):
            return


def test_adding_or_removing_a_file_changes_the_signs(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("a")
    before = seen(tmp_path)
    (tmp_path / "b.yml").write_text("b")
    assert seen(tmp_path) > before
    (tmp_path / "b.yml").unlink()
    assert seen(tmp_path) == before


def test_other_files_do_not_change_the_signs(tmp_path: Path) -> None:
    before = seen(tmp_path)
    (tmp_path / "a.yaml.swp").write_text("a")
    assert seen(tmp_path) == before


def test_swapping_a_link_above_changes_the_signs(tmp_path: Path) -> None:
    """Kubernetes updates a ConfigMap this way."""
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


def test_deleting_and_restoring_a_file_changes_its_sign(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("a")
    before = seen(file)
    file.unlink()
    gone = seen(file)
    assert gone != before
    file.write_text("a")
    assert seen(file) != gone
