"""Reads the user names and passwords that the gateway shows to brokers: for each principal a user
name and a password.

The file is a mapping in YAML, read with its safe loader:

    alice: {username: alice-at-kafka, password: ...}
    "*": {username: guest, password: ...}     # all others; without it they are refused
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from gateway.errors import ConfigurationError
from gateway.identity.credential import NoCredential, TokenFile
from gateway.wire.contract import Credential, Denial, Refusal

if TYPE_CHECKING:
    import yaml

LARGEST = 4 * 1024 * 1024
"""Bytes: some 50,000 principals."""

OTHERS = "*"
"""The name that stands for all principals that are not named."""

_UNKNOWN = Denial(
    Refusal.UNAUTHENTICATED, "brokers do not know the client: each_principal does not name it"
)

Passwords = Mapping[str, Credential]
"""Credentials by principal."""


class EachPrincipal(TokenFile):
    """The credentials for brokers of all principals, in a file that is read again whenever it
    changes (`TokenFile`)."""

    what = "passwords file"
    content = "a username and a password for each principal"
    _passwords: Passwords = MappingProxyType({})

    def current(self) -> Credential:
        """Return the credential for broker connections that the gateway opens for itself: one of
        the method `none`, without data."""
        super().current()
        return NoCredential().current()

    def of(self, principal: str | None) -> Credential | Denial:
        """Return the credential that the gateway presents to brokers for a principal; a denial if
        the file has no credential for it."""
        super().current()
        credential = self._passwords.get(principal or OTHERS) or self._passwords.get(OTHERS)
        return credential or _UNKNOWN

    def _read(self) -> None:
        with self._path.open("rb") as file:
            content = file.read(LARGEST + 1)
        try:
            self._passwords = read_passwords(content)
            self.last_error = None
        except ConfigurationError as error:
            self.last_error = str(error)


def read_passwords(content: bytes) -> Passwords:
    """Return the credentials in a passwords file, by principal. Raises `ConfigurationError` if the
    file is malformed. The error's text says what is wrong, and contains no password."""
    if len(content) > LARGEST:
        raise ConfigurationError(f"has more than {LARGEST} bytes")
    import yaml  # where there is such a file: it takes a megabyte, and milliseconds of the start

    try:
        root = yaml.compose(content, yaml.SafeLoader)
        document = yaml.safe_load(content)
    except (yaml.YAMLError, UnicodeDecodeError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        where = "" if mark is None else f", line {mark.line + 1}"
        raise ConfigurationError(f"is not YAML{where}") from None
    if not isinstance(document, dict) or not document:
        raise ConfigurationError("names nobody")
    _refuse_repeated(root)
    return {
        _name(number, name): _credential_of(number, document[name])
        for number, name in enumerate(document, 1)
    }


def _refuse_repeated(root: yaml.Node | None) -> None:
    """Raise `ConfigurationError` for a name that is there twice: YAML takes the last one."""
    assert root is not None, "a mapping, as its caller knows"
    names: set[str] = set()
    for key, _ in root.value:
        if key.value in names:
            raise ConfigurationError(f"has in line {key.start_mark.line + 1} a name again")
        names.add(key.value)


def _name(number: int, name: object) -> str:
    if not isinstance(name, str) or not name:
        raise ConfigurationError(f"has a name, number {number}, that is no text; put it in quotes")
    return name


def _credential_of(number: int, entry: object) -> Credential:
    if not isinstance(entry, dict) or entry.keys() != {"username", "password"}:
        raise ConfigurationError(f"has under name {number} no username and password alone")
    username, password = entry["username"], entry["password"]
    if not all(isinstance(part, str) and part for part in (username, password)):
        raise ConfigurationError(f"has under name {number} what is no text; put it in quotes")
    if ":" in username:
        raise ConfigurationError(f"has under name {number} a username with a colon")
    return Credential("basic", f"{username}:{password}".encode())
