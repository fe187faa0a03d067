"""`gateway init`: writes a commented configuration, and the secrets that can be generated.

`gateway check` accepts the written file at once; with TLS, once the certificates exist that the
file names. Existing files are never overwritten.

Some values only the user has, such as an issuer's public key. These are neither left blank nor
filled with a secret that everybody knows. The configuration of an edge has the key of a trial
issuer, which has signed one token for a first client and is discarded (`trial`). The file says by
what to replace this key.
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

RULES = "rules"
"""The folder beside the configuration for files of rules."""

KAFKA, TUBEMQ = "kafka", "tubemq"
"""The uses of `gateway init` that write a configuration for Kafka and for TubeMQ. All others write
one for Pulsar."""

_SEAL_BYTES = 32
"""256 random bits, from which a cipher of that strength is derived."""

_OWN, _ANYBODY = 0o600, 0o644


class _Secret(NamedTuple):
    name: str
    content: bytes
    note: str
    mode: int = _OWN


USES = {
    "sidecar": "use as sidecar",
    "edge": "use as edge",
    "shaper": "use as shaper",
    KAFKA: "brokers of Kafka",
    TUBEMQ: "servers of TubeMQ",
}
"""The uses that have a template, with the words for each in printed text."""


def write(use: str, path: Path, *, tls: bool = False) -> str:
    """Write the configuration for a use (see `USES`), and the files of secrets that it names.
    `tls`: use TLS to brokers (except TubeMQ's), and to clients (except a sidecar's).

    Return the text to print: what was written, and which commands come next. Raises
    `ConfigurationError` if the file exists, or if something cannot be written.
    """
    if os.path.lexists(path):
        raise ConfigurationError(
            f"{path}: already exists; choose another name, or move it away first"
        )
    try:
        if not path.parent.is_dir():
            advice = f"create it first: mkdir -p {shlex.quote(str(path.parent))}"
            raise ConfigurationError(f"{path}: its folder does not exist; {advice}")
        made = [*_make_secrets(use, path.parent / SECRETS), *_make_rules(use, path.parent / RULES)]
        if tls:  # for the certificates that the user provides
            (path.parent / SECRETS).mkdir(mode=0o700, exist_ok=True)
        _create(path, template(use, tls=tls).encode(), _ANYBODY)
    except OSError as error:
        reason = os.strerror(error.errno or 0).lower()
        raise ConfigurationError(
            f"{error.filename}: cannot be written: {reason}; {_WHERE}"
        ) from None
    written = f"{path}: written, for {USES[use]}{' with TLS' if tls else ''}"
    provided = _provided(use, path.parent / SECRETS) if tls else ()
    return "\n".join([written, *made, "", *provided, *_next(use, path, tls=tls)])


_WHERE = "choose another folder, or let this user write there"


_PLAIN, _TLS, _ALL = "#: plain", "#: tls", "#: all"
"""Lines of templates. The lines behind each are for files without TLS, with TLS, or both."""


def template(use: str, *, tls: bool) -> str:
    """Return the text of the configuration for a use, with or without TLS."""
    text = _text(use)
    kept, left_out, skips = [], _PLAIN if tls else _TLS, False
    for line in text.splitlines(keepends=True):
        if line.strip() in (_PLAIN, _TLS, _ALL):
            skips = line.strip() == left_out
        elif not skips:
            kept.append(line)
    return "".join(kept)


def _make_rules(use: str, folder: Path) -> Iterator[str]:
    """Write the rules of an edge, if there are none. Yield a line about them."""
    file = folder / "access.yaml"
    if use != "edge":
        return
    if os.path.lexists(file):
        yield f"{file}: kept as it was"
        return
    folder.mkdir(exist_ok=True)
    _create(file, _text("rules/access").encode(), _ANYBODY)
    yield f"{file}: made: who may do what"


def _text(name: str) -> str:
    """Return the text of a template."""
    return (files("gateway.config") / "templates" / f"{name}.yaml").read_text(encoding="utf-8")


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
    KAFKA: {},  # clients get addresses, and no names
    TUBEMQ: {},
}


def _create(path: Path, content: bytes, mode: int) -> None:
    """Create a file. Its permissions hold from the start, so that others can never read it."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(content)


# -- the printed text ------------------------------------------------------------------------


TRIAL_CERTIFICATE = (
    "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 365 "
    "-subj /CN=localhost -addext subjectAltName=DNS:localhost,IP:127.0.0.1 "
    "-keyout {folder}/tls.key -out {folder}/tls.crt"
)
"""Makes a certificate that signs itself; the templates have the same command."""


def _provided(use: str, folder: Path) -> Iterator[str]:
    """Yield the files that only the user has."""
    yield "It names files that are yours to provide:"
    if use != "sidecar":
        yield f"  {folder / 'tls.crt'}, {folder / 'tls.key'}: what clients are shown. For a trial:"
        yield f"    {TRIAL_CERTIFICATE.format(folder=shlex.quote(str(folder)))}"
    if use != TUBEMQ:
        yield f"  {folder / 'brokers-ca.crt'}: who signs the brokers' certificates"
    yield ""


def _next(use: str, path: Path, *, tls: bool) -> Iterator[str]:
    yield "Next:"
    for command, purpose in _COMMANDS.items():
        yield f"  {f'gateway {command} {shlex.quote(str(path))}':<30} # {purpose}"
    yield ""
    if use == KAFKA:
        where = "with TLS on 127.0.0.1:19093" if tls else "on 127.0.0.1:19092"
        yield f"It expects brokers {where}: name yours by GATEWAY_BROKERS, and their ids by"
        yield "GATEWAY_BROKER_IDS."
    elif use == TUBEMQ:
        yield "It expects a master on 127.0.0.1:18715: name yours by GATEWAY_BROKERS, and the ids"
        yield "of brokers by GATEWAY_BROKER_IDS."
    elif tls:
        yield "It expects brokers with TLS on 127.0.0.1:16651: name yours by GATEWAY_BROKERS."
    else:
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
