"""Reads a file as a `Configuration`, or reports all of its mistakes at once."""

from __future__ import annotations

import os
import stat
from functools import partial
from typing import TYPE_CHECKING

from pydantic import ValidationError

from gateway.config import source
from gateway.config.checks import find_mistakes
from gateway.config.mistakes import Mistake, Place, explain, format_place
from gateway.config.model import Configuration
from gateway.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from gateway.config.source import Source

_ADVICE = "name another file, or write one with: gateway init"


def load(
    path: Path, environment: Mapping[str, str] | None = None, data: bytes | None = None
) -> Configuration:
    """Read and check a configuration file. Relative paths in it start at its folder.

    `environment` replaces the environment variables of the process. `data` is what the file holds,
    if it has been read. Raises `ConfigurationError`
    with a line for each mistake: `gateway.yaml:12: listeners[0].bind: has no port; host:port`.
    """
    environment = os.environ if environment is None else environment
    found = source.parse(read_text(path, _ADVICE, data), str(path), environment)
    configuration, mistakes = build(found.data, path.parent)
    lines = report(path, found, mistakes)
    if configuration is not None and not lines:
        return configuration
    raise ConfigurationError("\n".join(lines))


def report(path: Path, found: Source, mistakes: Iterable[Mistake]) -> list[str]:
    """Return a sorted line for each mistake in a file's text and data."""
    return [f"{path}:{_format(*line)}" for line in sorted(_report(found, mistakes))]


def _report(found: Source, mistakes: Iterable[Mistake]) -> Iterator[tuple[int, str, str]]:
    """Yield line, place and text of mistakes: one alone for a value with an unset variable."""
    unknown = [it.place for it in found.unreplaced]
    for place, text, line in (*found.repeated, *found.unreplaced):
        yield line or found.line(place), format_place(place), text
    for place, text, _ in mistakes:
        if not any(_inside(place, other) for other in unknown):
            yield found.line(place), format_place(place), text + _origin(found, place)


def _origin(found: Source, place: Place) -> str:
    """Name the variables that a wrong value comes from: the mistake may be in the environment."""
    names = [name for at, names in found.variables.items() if _inside(place, at) for name in names]
    return f" (the value comes from {', '.join(dict.fromkeys(names))})" if names else ""


def _inside(place: Place, other: Place) -> bool:
    return place[: len(other)] == other


def check(path: Path, environment: Mapping[str, str] | None = None) -> str:
    """Return what `gateway check` prints for a good file. Raises as `load` does."""
    found = load(path, environment)
    parts = [count(len(found.listeners), "listener"), count(len(found.clusters), "cluster")]
    if found.store is not None:
        parts.append(f"store {found.store.url}")
    return f"{path}: ok ({', '.join(parts)})"


def build(data: object, folder: Path) -> tuple[Configuration | None, tuple[Mistake, ...]]:
    """Build a configuration from plain data, or find its mistakes. `folder` has its files."""
    if data is None:
        return None, (Mistake((), "is empty; at least version, listeners and clusters"),)
    mistakes = tuple(find_mistakes(data))
    try:
        locate = partial(_locate, folder.absolute())
        context = {
            "locate": locate,
            "locate_folder": partial(locate, or_folder=True),
            "locate_new": partial(_locate_new, folder.absolute()),
            "locate_new_folder": partial(_locate_new_folder, folder.absolute()),
        }
        return Configuration.model_validate(data, context=context), mistakes
    except ValidationError as error:
        return None, (*mistakes, *explain(error, Configuration))


def read_text(path: Path, advice: str, data: bytes | None = None) -> str:
    """Read a file, unless its `data` is given. Raises `ConfigurationError`, with the advice if it
    cannot be read."""
    try:
        return (path.read_bytes() if data is None else data).decode()
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be read: {_reason(error)}; {advice}") from None
    except UnicodeDecodeError:
        raise ConfigurationError(f"{path}: is not UTF-8 text; save it as UTF-8") from None


def _locate_new(folder: Path, name: str) -> Path:
    """Return the path of a file that the gateway may make. Raises `ValueError`."""
    path = folder / name
    if not path.parent.is_dir() or path.is_dir():
        raise ValueError("is not in a folder that exists; a path, relative to the configuration's")
    return path


def _locate_new_folder(folder: Path, name: str) -> Path:
    """Return the path of a folder that is there, or that the gateway may make. Raises
    `ValueError`."""
    path = folder / name
    if not path.parent.is_dir() or (path.exists() and not path.is_dir()):
        raise ValueError("is no folder, nor in one; a path, relative to the configuration's")
    return path


def _locate(folder: Path, name: str, *, or_folder: bool = False) -> Path:
    """Return the path of a file that the configuration names. Raises `ValueError` if unreadable."""
    if "\0" in name:
        raise ValueError("is not a path; remove null characters")
    path = folder / name
    try:
        found = path.stat()
        if or_folder and stat.S_ISDIR(found.st_mode):
            return path
        if not stat.S_ISREG(found.st_mode):
            raise ValueError("is not a file; name a file")
        if not found.st_size:
            raise ValueError("is an empty file; name one with a key or token")
        path.open("rb").close()
    except OSError as error:
        text = f"cannot be read: {_reason(error)}; a path, relative to the configuration's folder"
        raise ValueError(text) from None
    return path


def _reason(error: OSError) -> str:
    return os.strerror(error.errno or 0).lower()


def _format(line: int, place: str, text: str) -> str:
    return f"{line}: {place}: {text}" if place else f"{line}: {text}"


def count(number: int, noun: str) -> str:
    """Return a number with its noun: `1 listener`, `2 listeners`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
