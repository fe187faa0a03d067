"""The inputs that are kept: one archive for each target, and loose ones that once failed.

An archive is the same for the same inputs, so a change of it is a change of inputs.
"""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path

CORPUS = Path(__file__).parent / "corpus"
"""`<target>.zip`: what guided runs found new, by libFuzzer's names. `<target>/`: what once failed
or somebody wrote, by names with a hyphen."""

_EPOCH = (1980, 1, 1, 0, 0, 0)


def inputs(target: str, corpus: Path = CORPUS) -> dict[str, bytes]:
    """Return all inputs of a target by name."""
    with zipfile.ZipFile(corpus / f"{target}.zip") as archive:
        packed = {name: archive.read(name) for name in archive.namelist()}
    return packed | found(target, corpus)


def found(target: str, corpus: Path = CORPUS) -> dict[str, bytes]:
    """Return the loose inputs of a target."""
    return {file.name: file.read_bytes() for file in sorted((corpus / target).glob("*-*"))}


def unpack(target: str, folder: Path, corpus: Path = CORPUS) -> Path:
    """Write all inputs of a target into a folder, which is made, and return it."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in inputs(target, corpus).items():
        (folder / name).write_bytes(data)
    return folder


def pack(target: str, packed: Mapping[str, bytes], corpus: Path = CORPUS) -> None:
    """Keep these inputs of a target in its archive, in place of those before."""
    with zipfile.ZipFile(corpus / f"{target}.zip", "w") as archive:
        for name, data in sorted(packed.items()):
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)
