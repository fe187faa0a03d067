"""Formats a configuration for operators as YAML: all settings with their values, but no secrets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from gateway.config.model import Configuration
from gateway.config.parts import Part

_IN_URL = re.compile(r"(?<=://)[^/@\s]+@|(?<=\?)[^\s#]+")
"""User and password of a URL, and its query: an environment variable may have put them there."""


def shown(configuration: Configuration) -> str:
    """Return the configuration as YAML. It has no secrets: of files of keys and tokens it names
    only the paths, and in URLs the user, password and query are masked."""
    import yaml  # for operators who ask: it takes a megabyte

    return yaml.safe_dump(_plain(configuration), sort_keys=False, allow_unicode=True)


def _plain(value: object) -> Any:
    if isinstance(value, Part):
        return {name: _plain(getattr(value, name)) for name in type(value).model_fields}
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, tuple | list | set | frozenset) and not hasattr(value, "_fields"):
        return [_plain(entry) for entry in value]
    if value is None or isinstance(value, bool | int | float):
        return value
    return _IN_URL.sub("(masked)@", str(value))
