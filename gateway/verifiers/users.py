"""A file of users, which is read again when it changes."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

from gateway.errors import ConfigurationError
from gateway.system.files import Sign, sign
from gateway.verifiers import Log

LARGEST_FILE = 4 * 1024 * 1024
"""Bytes: some ten thousand users."""

Users = TypeVar("Users")


class UserFile(Generic[Users]):
    """The users in a file, which is read again when it changes. `what`: a description of the file,
    with which the texts of errors begin. `read`: returns the users in the file's content, or raises
    `ConfigurationError` if the content is wrong.

    Raises `ConfigurationError` if the file is wrong at the start. If it becomes wrong later, its
    last good content is still used. `users`: as of the last check of the file.
    """

    def __init__(
        self, path: Path, what: str, read: Callable[[bytes, str], Users], log: Log
    ) -> None:
        self._path = path
        self._what = what
        self._read = read
        self._log = log
        self._sign: Sign = sign(path)
        self.users = self._load()

    def current(self) -> Users:
        """Return the users. If the file has changed, it is read again first."""
        now = sign(self._path)
        if now != self._sign:
            self._sign = now
            try:
                self.users = self._load()
            except ConfigurationError as error:
                self._log("password_file_unusable", file=str(self._path), error=str(error))
        return self.users

    def _load(self) -> Users:
        try:
            with self._path.open("rb") as file:
                content = file.read(LARGEST_FILE + 1)
        except OSError as error:
            raise ConfigurationError(
                f"{self._what} cannot be read: {os.strerror(error.errno or 0)}"
            ) from None
        if len(content) > LARGEST_FILE:
            raise ConfigurationError(
                f"{self._what} is larger than {LARGEST_FILE} bytes: is it the right one?"
            )
        return self._read(content, self._what)
