"""`gateway init`: writes a commented configuration, and the secrets that can be generated.

`gateway check` accepts the file at once. Existing files are never overwritten.

What only the user has (an issuer's public key) is neither left blank nor filled with a secret that
everybody knows. An edge gets the key of a trial issuer, which signed one token for a first client
and is discarded (`trial`); the file says what to replace it with.
"""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Callable, Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from gateway.errors import ConfigurationError

SECRETS = "secrets"
"""The folder beside the configuration for files that only the gateway may read."""

_SEAL_BYTES = 32
"""256 random bits, from which a cipher of that strength is derived."""

_OWN, _ANYBODY = 0o600, 0o644


class _Secret(NamedTuple):
    name: str
    content: bytes
    note: str
    mode: int = _OWN


def write(use: str, path: Path) -> str:
    """Write the configuration for a use (sidecar, edge, shaper), and the secrets that it names.

    Return the text to print: what was written, and the next commands. Raises `ConfigurationError`
    if the file exists, or something cannot be written.
    """
    if os.path.lexists(path):
        raise ConfigurationError(
            f"{path}: already exists; choose another name, or move it away first"
        )
    try:
        if not path.parent.is_dir():
            advice = f"create it first: mkdir -p {shlex.quote(str(path.parent))}"
            raise ConfigurationError(f"{path}: its folder does not exist; {advice}")
        made = _make_secrets(use, path.parent / SECRETS)
        _create(path, _template(use), _ANYBODY)
    except OSError as error:
        reason = os.strerror(error.errno or 0).lower()
        raise ConfigurationError(
            f"{error.filename}: cannot be written: {reason}; {_WHERE}"
        ) from None
    return "\n".join([f"{path}: written, for use as {use}", *made, "", *_next(use, path)])


_WHERE = "choose another folder, or let this user write there"


def _template(use: str) -> bytes:
    return files("gateway.config").joinpath("templates", f"{use}.yaml").read_bytes()


# -- secrets ---------------------------------------------------------------------------------


def _make_secrets(use: str, folder: Path) -> list[str]:
    """Generate the secrets that do not exist. Return one line about each."""
    lines = []
    for name, make in _MAKERS[use].items():
        folder.mkdir(mode=0o700, exist_ok=True)
        if os.path.lexists(folder / name):
            lines.append(f"{folder / name}: kept as it was")
            continue
        for secret in make():
            _create(folder / secret.name, secret.content, secret.mode)
            lines.append(f"{folder / secret.name}: made: {secret.note}")
    return lines


def _seal() -> Iterator[_Secret]:
    note = "random, and every gateway behind one address needs the same"
    yield _Secret("seal.key", os.urandom(_SEAL_BYTES), note)


def _trial() -> Iterator[_Secret]:
    from gateway.config import trial  # takes 20 MB, which other uses do not need

    issued = trial.issue(int(time.time()))
    note = "the public key of a trial issuer, in the place of your own issuer's"
    yield _Secret("trial-issuer.pem", issued.public_key, note, _ANYBODY)
    note = f"the one token of that issuer, which names {trial.SUBJECT!r} and is good for 7 days"
    yield _Secret("trial.token", issued.token, note)


Maker = Callable[[], Iterator[_Secret]]

# By use: the file that shows whether a maker has run, and the maker.
_MAKERS: Mapping[str, Mapping[str, Maker]] = {
    "sidecar": {},
    "edge": {"seal.key": _seal, "trial-issuer.pem": _trial},
    "shaper": {"seal.key": _seal},
}


def _create(path: Path, content: bytes, mode: int) -> None:
    """Create a file. Its permissions hold from the start, so that others can never read it."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(content)


# -- the printed text ------------------------------------------------------------------------


def _next(use: str, path: Path) -> Iterator[str]:
    yield "Next:"
    for command, purpose in _COMMANDS.items():
        yield f"  {f'gateway {command} {shlex.quote(str(path))}':<30} # {purpose}"
    yield ""
    yield "It expects brokers on 127.0.0.1:16650. In another terminal, brokers to try it with:"
    yield "  gateway sandbox"
    if use == "edge":
        token = path.parent / SECRETS / "trial.token"
        yield f"Clients need a token: {token} is one."


_COMMANDS = {
    "check": "is it right?",
    "doctor": "does all that it names work?",
    "run": "serve clients",
}
