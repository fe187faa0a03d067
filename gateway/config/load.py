"""From a file to a `Configuration`, or to all of its mistakes at once."""

from __future__ import annotations

import os
import stat
from functools import partial
from typing import TYPE_CHECKING

from pydantic import ValidationError

from gateway.config import source
from gateway.config.checks import checked
from gateway.config.mistakes import Mistake, explained, written
from gateway.config.model import Configuration
from gateway.errors import ConfigurationError

if TYPE_CHECKING:
    from pathlib import Path


def load(path: Path) -> Configuration:
    """Read and check a configuration file; relative paths in it start at its own folder.

    Raises `ConfigurationError` with one line for each mistake:
    `gateway.yaml:12: listeners[0].bind: what is wrong; what would be right`.
    """
    found = source.parse(_text(path), str(path))
    configuration, mistakes = build(found.data, path.parent)
    mistakes += found.mistakes
    if configuration is not None and not mistakes:
        return configuration
    lines = sorted((it.line or found.line(it.place), written(it.place), it.text) for it in mistakes)
    raise ConfigurationError("\n".join(f"{path}:{_joined(*line)}" for line in lines))


def check(path: Path) -> str:
    """Answer what `gateway check` prints of a good file. Raises as `load` does."""
    found = load(path)
    listeners = _counted(len(found.listeners), "listener")
    return f"{path}: ok ({listeners}, {_counted(len(found.clusters), 'cluster')})"


def build(data: object, folder: Path) -> tuple[Configuration | None, tuple[Mistake, ...]]:
    """Make a configuration of plain data, or find its mistakes; files are sought in `folder`."""
    if data is None:
        return None, (Mistake((), "is empty; at least version, listeners and clusters"),)
    mistakes = tuple(checked(data))
    try:
        locate = partial(_located, folder.absolute())
        return Configuration.model_validate(data, context={"locate": locate}), mistakes
    except ValidationError as error:
        return None, (*mistakes, *explained(error, Configuration))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be read: {_reason(error)}") from None
    except UnicodeDecodeError:
        raise ConfigurationError(f"{path}: is not UTF-8 text") from None


def _located(folder: Path, name: str) -> Path:
    """Answer where a file of the configuration is, after a look whether it can be read."""
    path = folder / name
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):
            raise ValueError("is not a file; the path of one")
        if not found.st_size:
            raise ValueError("is a file with nothing in it; one with a key or token")
        path.open("rb").close()
    except OSError as error:
        text = f"cannot be read: {_reason(error)}; a path, relative to the configuration's folder"
        raise ValueError(text) from None
    return path


def _reason(error: OSError) -> str:
    return os.strerror(error.errno or 0).lower()


def _joined(line: int, place: str, text: str) -> str:
    return f"{line}: {place}: {text}" if place else f"{line}: {text}"


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
