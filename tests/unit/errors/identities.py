"""Mistakes in the ways to verify a client, and in the files that they name."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import bcrypt
import pytest

from gateway.identity.scram import line
from tests.unit.errors.case import KEY, Case, config, kafka, tubemq, verify
from tests.unit.errors.starts import Start, run
from tests.unit.errors.tlsfiles import FILES, SHOWN

HASH = "$2y$10$" + "a" * 53
WEAK = bcrypt.hashpw(b"secret", b"$2b$05$abcdefghijklmnopqrstuu").decode()
MAKE = "make the line with: htpasswd -nB -C 12 <user>"
SYMMETRIC = {"kty": "oct", "k": "c2VjcmV0"}
URL = "jwks_url: https://a.example/keys"


def identity(more: str, listener: str = "") -> str:
    """Return a file whose listener verifies clients in some way."""
    return config(listener=f"identity: {{mode: verify, {more}}}{listener and f', {listener}'}")


def passwords(name: str, content: str | bytes, wrong: str) -> Case:
    """Return the case of a password file."""
    return Case(
        name,
        identity("basic: {htpasswd_file: users}"),
        f"The password file users{wrong}",
        files={"users": content.encode() if isinstance(content, str) else content},
    )


SETTINGS = [
    Case(
        "principals in pass-through",
        config(listener='identity: {principals: [{match: "a", principal: b}]}'),
        (
            "gateway.yaml:2: listeners[0].identity.principals: has no effect: pass-through knows "
            "no names; set mode: verify, or leave it out"
        ),
    ),
    Case(
        "certificates without TLS",
        identity("tls: {}"),
        (
            "gateway.yaml:2: listeners[0].identity.tls: has no effect: clients show no "
            "certificate; set tls.client_certificates"
        ),
    ),
    Case(
        "certificates that nobody is asked for",
        identity("tls: {}", f"tls: {{{SHOWN}}}"),
        (
            "gateway.yaml:2: listeners[0].identity.tls: has no effect: clients show no "
            "certificate; set tls.client_certificates"
        ),
        files=FILES,
    ),
    Case(
        "settings of an issuer that is not there",
        verify(f"audience: a, issuers: [{{issuer: a, {URL}}}]"),
        (
            "gateway.yaml:2: listeners[0].identity.token.audience: has no effect: each of issuers "
            "has its own"
        ),
    ),
    Case(
        "two issuers of one name",
        verify(f"issuers: [{{issuer: a, {URL}}}, {{issuer: a, {URL}}}]"),
        (
            "gateway.yaml:2: listeners[0].identity.token.issuers[1].issuer: is the same as of "
            "listeners[0].identity.token.issuers[0]; tokens must tell their issuers apart"
        ),
    ),
    Case(
        "an issuer that cannot be discovered",
        verify("discovery: true"),
        (
            "gateway.yaml:2: listeners[0].identity.token.issuer: cannot be discovered: is empty; "
            "leave the line out or give it a value"
        ),
    ),
    Case(
        "an issuer that is discovered without TLS",
        verify("discovery: true, issuer: http://a.example"),
        (
            "gateway.yaml:2: listeners[0].identity.token.issuer: cannot be discovered: is not "
            "secured by TLS; https://host/path"
        ),
    ),
    Case(
        "an authority of nothing that is fetched",
        verify("secret_file: secret, ca_file: crt"),
        (
            "gateway.yaml:2: listeners[0].identity.token.ca_file: has no effect: nothing is "
            "fetched; with jwks_url or discovery, or leave it out"
        ),
        files=FILES | {"secret": KEY},
    ),
    Case(
        "keys over HTTP",
        verify("jwks_url: http://a.example/keys"),
        (
            "gateway.yaml:2: listeners[0].identity.token.jwks_url: is not secured by TLS; "
            "https://host/path"
        ),
    ),
    Case(
        "keys behind a password",
        verify("jwks_url: 'https://me:secret@a.example/keys'"),
        (
            "gateway.yaml:2: listeners[0].identity.token.jwks_url: contains a user or password; "
            "https://host/path"
        ),
    ),
    Case(
        "keys at no URL",
        verify("jwks_url: 'https://a b/'"),
        "gateway.yaml:2: listeners[0].identity.token.jwks_url: is not a URL; https://host/path",
    ),
    Case(
        "names that match no regular expression",
        identity('anonymous: {}, principals: [{match: "(", principal: b}]'),
        (
            "gateway.yaml:2: listeners[0].identity.principals[0].match: is not a regular "
            "expression: missing ): ("
        ),
    ),
    Case(
        "a group that the pattern does not have",
        identity('anonymous: {}, principals: [{match: "(a)", principal: "{2}"}]'),
        (
            "gateway.yaml:2: listeners[0].identity.principals[0]: names the group 2, which match "
            "does not have"
        ),
    ),
]

FILES_OF_KEYS = [
    Case(
        "a key set that is none",
        verify("jwks_file: keys.json"),
        "The key set file keys.json holds no JSON Web Key Set",
        files={"keys.json": b'{"kty": "RSA"}'},
    ),
    Case(
        "a key set of secrets",
        verify("jwks_file: keys.json"),
        "The key set file keys.json holds no key that verifies signatures",
        files={"keys.json": json.dumps({"keys": [SYMMETRIC]}).encode()},
    ),
    Case(
        "an authority of the issuer's server that is none",
        verify(f"{URL}, ca_file: key"),
        "The certificate file key holds no certificate in PEM form (BEGIN CERTIFICATE)",
        files=FILES,
    ),
]

PASSWORDS = [
    passwords("a line without a hash", "\nalice\n", f", line 2, is not name:hash; {MAKE}"),
    passwords(
        "a user who is there twice",
        f"a:{HASH}\na:{HASH}\n",
        ", line 2, has a name that is there before",
    ),
    passwords(
        "a weak hash",
        f"a:{HASH}\nb:{WEAK}\n",
        f", line 2, has bcrypt of cost 5, below 10; {MAKE}",
    ),
    passwords("nobody", "# nobody\n", f" names nobody; {MAKE}"),
    passwords(
        "a file of users that is too large",
        b"x" * (4 * 1024 * 1024 + 1),
        (" is larger than 4194304 bytes: is it the right one?"),
    ),
]

HOW = "; docs/configuration.md tells how to make one"
GOOD = line("alice", "secret", iterations=4096, salt=b"0123456789abcdef")


def scram(name: str, content: str | bytes, wrong: str) -> Case:
    """Return the case of a file of SCRAM credentials."""
    return Case(
        name,
        kafka("identity: {mode: verify, scram: {credentials_file: users}}"),
        f"The credentials file users{wrong}",
        files={"users": content.encode() if isinstance(content, str) else content},
    )


CREDENTIALS = [
    scram("no credentials", "# nobody\n", f" names nobody{HOW}"),
    scram(
        "credentials that are there twice",
        f"{GOOD}\n{GOOD}\n",
        ", line 2, has a name and mechanism that are there before",
    ),
    scram(
        "credentials of another form",
        "\nalice:secret\n",
        f", line 2, is not name:mechanism:iterations:salt:stored key:server key{HOW}",
    ),
    scram(
        "credentials by SHA-1",
        GOOD.replace("SHA-256", "SHA-1"),
        f", line 1, has a mechanism that is neither SCRAM-SHA-256 nor SCRAM-SHA-512{HOW}",
    ),
    scram(
        "iterations that are no number",
        GOOD.replace("4096", "4k"),
        f", line 1, has iterations that are no number{HOW}",
    ),
    scram(
        "few iterations",
        GOOD.replace("4096", "4095"),
        f", line 1, has iterations that are not from 4096 to 100000{HOW}",
    ),
    scram(
        "a short salt",
        GOOD.replace("MDEyMzQ1Njc4OWFiY2RlZg==", "MDEyMzQ1Ng=="),
        f", line 1, has a salt that is not 8 to 64 bytes in base64{HOW}",
    ),
    scram(
        "keys of another mechanism",
        GOOD.replace("SHA-256", "SHA-512"),
        f", line 1, has a key that is not 64 bytes in base64{HOW}",
    ),
]


def users(name: str, content: bytes, wrong: str) -> Case:
    """Return the case of a file of users who sign."""
    return Case(
        name,
        tubemq("identity: {mode: verify, signature: {users_file: users}}"),
        f"The users file users{wrong}",
        files={"users": content},
    )


USERS = [
    users("no users", b"# nobody\n", " names nobody; a line is name:password"),
    users("a user without a password", b"\nalice\n", ", line 2, is not name:password"),
    users("a user twice", b"a:1\na:2\n", ", line 2, has a name that is there before"),
]

CASES = [*SETTINGS, *FILES_OF_KEYS, *PASSWORDS, *CREDENTIALS, *USERS]


# -- packages that are not installed -----------------------------------------------------------


def _without(package: str, *text: str) -> Start:
    """Return a start without a package."""

    def fail(monkeypatch: pytest.MonkeyPatch) -> str:
        Path("users").write_text(f"a:{HASH}")
        own = ("gateway.verifiers.", "gateway.remote.", "gateway.identity.htpasswd", f"{package}.")
        for name in [name for name in sys.modules if name.startswith(own)]:
            monkeypatch.delitem(sys.modules, name)
        monkeypatch.setitem(sys.modules, package, None)
        return run(*text).removeprefix("gateway: error: ")

    return Start(f"clients without the package {package}", fail, _INSTALL[package])


def _without_re2(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setitem(sys.modules, "re2", None)
    return run(identity("anonymous: {}, principals: [{match: a, principal: b}]"))


_INSTALL = {
    package: (
        f"The configuration needs the package {package}, which is not installed. "
        f"Install it with: pip install 'broker-gateway[{extra}]'"
    )
    for package, extra in (("bcrypt", "basic"), ("argon2", "basic"), ("httpx", "http"))
}

STARTS = [
    *(_without(it, identity("basic: {htpasswd_file: users}")) for it in ("bcrypt", "argon2")),
    _without("httpx", verify(URL)),
    Start(
        "a regular expression without its package",
        _without_re2,
        (
            "gateway.yaml:2: listeners[0].identity.principals[0].match: needs a package that is "
            "not installed: pip install 'broker-gateway[regex]'"
        ),
    ),
]
