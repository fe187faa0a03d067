"""Build the source distribution and the wheel. A commit gives the same bytes on each machine.

    python -m pip install -r deploy/package-requirements.txt
    python deploy/package.py [FOLDER]

writes both to FOLDER (`dist`). In a checkout the last commit is built, not what has changed since;
elsewhere, as in a container, the folder around this one, and SOURCE_DATE_EPOCH has to be set.

setuptools takes times, rights and the order of files from the disk for a source distribution, so it
is packed again here. The wheel is made of that, under SOURCE_DATE_EPOCH and a fixed umask.
"""

from __future__ import annotations

import gzip
import io
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[1]

USUAL_UMASK = 0o022
"""Rights in archives: everybody reads, the owner writes."""


def main(words: list[str]) -> int:
    """Build both files, and print their paths."""
    out = Path(words[0] if words else "dist").resolve()
    out.mkdir(parents=True, exist_ok=True)
    os.umask(USUAL_UMASK)
    epoch = _epoch()
    with TemporaryDirectory() as folder:
        source, made, unpacked = (Path(folder, name) for name in ("source", "made", "unpacked"))
        _export(source)
        _build("--sdist", source, made, epoch)
        archive = _only(made)
        sdist = out / archive.name
        _repack(archive, sdist, epoch)
        with tarfile.open(sdist) as packed:
            _unpack(packed, unpacked)
        _build("--wheel", _only(unpacked), Path(folder, "wheel"), epoch)
        built = _only(Path(folder, "wheel"))
        wheel = Path(shutil.copyfile(built, out / built.name))
    sys.stdout.write(f"{sdist}\n{wheel}\n")
    return 0


def _is_checkout() -> bool:
    return (ROOT / ".git").exists()


def _epoch() -> int:
    """Return the time that all files get: SOURCE_DATE_EPOCH, else that of the last commit."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    if given:
        return int(given)
    if not _is_checkout():
        raise SystemExit("SOURCE_DATE_EPOCH is not set: seconds since 1970, as of the last commit")
    return int(_git("log", "-1", "--format=%ct"))


def _export(folder: Path) -> None:
    """Copy what is built to an empty folder, so that leftovers of other builds have no effect."""
    if _is_checkout():
        with tarfile.open(fileobj=io.BytesIO(_git("archive", "HEAD"))) as packed:
            _unpack(packed, folder)
    else:
        left_out = shutil.ignore_patterns("*.egg-info", "__pycache__", "build", "dist", ".venv")
        shutil.copytree(ROOT, folder, ignore=left_out)


def _unpack(packed: tarfile.TarFile, folder: Path) -> None:
    # Pythons before 3.11.4 have no filters; later ones warn without.
    packed.extraction_filter = getattr(tarfile, "data_filter", None)
    packed.extractall(folder)  # noqa: S202 - archives that were made here


def _git(*words: str) -> bytes:
    command = ["git", "-C", str(ROOT), *words]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout  # noqa: S603


def _build(what: str, source: Path, out: Path, epoch: int) -> None:
    """Let `build` make one of both, with the setuptools of this environment."""
    command = [sys.executable, "-m", "build", what, "--no-isolation", "--outdir", str(out)]
    environment = os.environ | {"SOURCE_DATE_EPOCH": str(epoch), "PYTHONHASHSEED": "0"}
    done = subprocess.run(  # noqa: S603 - the command is this file's own
        [*command, str(source)], env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(done.stdout + done.stderr)


def _only(folder: Path) -> Path:
    (found,) = folder.iterdir()
    return found


def _repack(archive: Path, out: Path, epoch: int) -> None:
    """Repack an archive: sort its members, and give each uid 0, one time and the usual rights."""
    with tarfile.open(archive) as packed, out.open("wb") as file:
        members = sorted(packed.getmembers(), key=lambda it: it.name)
        with (
            gzip.GzipFile("", "wb", 9, file, epoch) as compressed,
            tarfile.open(fileobj=compressed, mode="w", format=tarfile.PAX_FORMAT) as plain,
        ):
            for member in members:
                plain.addfile(_usual(member, epoch), packed.extractfile(member))


def _usual(member: tarfile.TarInfo, epoch: int) -> tarfile.TarInfo:
    found = tarfile.TarInfo(member.name)
    found.type, found.size, found.mtime = member.type, member.size, epoch
    found.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
