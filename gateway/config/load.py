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
    """Read and check a configuration file. Relative paths in it are relative to its folder.

    `environment`: used in place of the process's environment variables. `data`: the file's content,
    if the caller has already read it.

    Raises `ConfigurationError` with a line for each mistake: `gateway.yaml:12: listeners[0].bind:
    has no port; host:port`.
    """
    environment = os.environ if environment is None else environment
    parsed = source.parse(read_text(path, _ADVICE, data), str(path), environment)
    configuration, mistakes = build(parsed.data, path.parent)
    lines = report(path, parsed, mistakes)
    if configuration is not None and not lines:
        return configuration
    raise ConfigurationError("\n".join(lines))


def report(path: Path, parsed: Source, mistakes: Iterable[Mistake]) -> list[str]:
    """Return one line of text for each mistake in a file, by line number. `parsed`: has the
    mistakes that only the file's text shows. `mistakes`: the mistakes in the file's data."""
    return [f"{path}:{_format(*line)}" for line in sorted(_report(parsed, mistakes))]


def _report(parsed: Source, mistakes: Iterable[Mistake]) -> Iterator[tuple[int, str, str]]:
    """Yield line, place and text of mistakes: one alone for a value with an unset variable."""
    unknown = [mistake.place for mistake in parsed.unreplaced]
    for place, text, line in (*parsed.repeated, *parsed.unreplaced):
        yield line or parsed.line(place), format_place(place), text
    for place, text, _ in mistakes:
        if not any(_inside(place, other) for other in unknown):
            yield parsed.line(place), format_place(place), text + _origin(parsed, place)


def _origin(parsed: Source, place: Place) -> str:
    """Name the variables that a wrong value comes from: the mistake may be in the environment."""
    names = [name for at, names in parsed.variables.items() if _inside(place, at) for name in names]
    return f" (the value comes from {', '.join(dict.fromkeys(names))})" if names else ""


def _inside(place: Place, other: Place) -> bool:
    return place[: len(other)] == other


def check(path: Path, environment: Mapping[str, str] | None = None) -> str:
    """Return what `gateway check` prints for a file without mistakes. Raises `ConfigurationError`
    as `load` does."""
    configuration = load(path, environment)
    parts = [
        count(len(configuration.listeners), "listener"),
        count(len(configuration.clusters), "cluster"),
    ]
    if configuration.store is not None:
        parts.append(f"store {configuration.store.url}")
    return f"{path}: ok ({', '.join(parts)})"


def build(data: object, folder: Path) -> tuple[Configuration | None, tuple[Mistake, ...]]:
    """Return the configuration that plain data describes, and the mistakes in the data. The
    configuration is None if the data has a wrong shape. `folder`: the folder of the configuration
    file."""
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
    """Return the text of a file. `data`: the file's content, if the caller has already read it.
    Raises `ConfigurationError`; if the file cannot be read, the error's message ends with
    `advice`."""
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
        status = path.stat()
        if or_folder and stat.S_ISDIR(status.st_mode):
            return path
        if not stat.S_ISREG(status.st_mode):
            raise ValueError("is not a file; name a file")
        if not status.st_size:
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
    """Return a number with its noun as text: `1 listener`, `2 listeners`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
