"""`python -m tests.docs.errors`: writes docs/errors.md from the remedies below.

A remedy stands here only where it says more than its message. Tests hold each of them to a message
of the code, and the page to this module.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PAGE = Path(__file__).resolve().parents[2] / "docs" / "errors.md"

EXAMPLE = (
    "gateway.yaml:3: listeners[0].bind: has no port; host:port, [IPv6 address]:port in quotes, "
    "or :port for all addresses"
)
"""A message that shows the form of all."""

HEAD = f"""\
<!-- generated: make metrics, from tests/docs/errors.py -->
# Errors and their remedies

All mistakes of a file are reported at once, each on a line of its own. A line has the file, the
line number, the place, what is wrong, and what would be right:

```text
{EXAMPLE}
```

- After `(the value comes from NAME)`, correct the environment variable NAME, not the file.
- Files of keys, certificates and passwords are read once the configuration itself is right; only
  the first mistake in them is reported, with the name of the file.
- Messages are on standard error. `gateway run`, `check`, `init` and `rules` then exit with status
  2 and have served no client.
- Only [`gateway doctor`](doctor.md) tests whether brokers, names, credentials and ports work.

The tables below explain messages whose cause or remedy takes more words. They have the beginning of
a message, without its place; `…` stands for any text. All other messages say what is right;
[every setting](configuration.md#every-setting) has its values and bounds.
"""


class Remedy(NamedTuple):
    """What to do about a message that begins so. `message`: `…` stands for any text."""

    message: str
    text: str

    def is_for(self, message: str) -> bool:
        """Return whether a message, without its place, begins so."""
        parts = (re.escape(part) for part in self.message.split("…"))
        return re.match(".+?".join(parts), message, re.DOTALL) is not None


class Section(NamedTuple):
    """A section of the page. `note`: stands before the table."""

    title: str
    remedies: tuple[Remedy, ...]
    note: str = ""


FILE = (
    Remedy(
        "gateway.yaml: holds characters that YAML does not allow",
        "`cat -v gateway.yaml` shows these characters as `^A`. They often come from copied text.",
    ),
    Remedy(
        "gateway.yaml: cannot be checked",
        "The child process that reads the file was killed, mostly because memory was short, or has "
        "failed: its error is above this message.",
    ),
    Remedy(
        "is not YAML: …",
        "Look in this line and those above for a tab, a value that begins with `[` or `*`, an open "
        "bracket, or `${NAME}` without quotes inside `[ ]` or `{ }`.",
    ),
    Remedy(
        "is not a text; keys are texts",
        "YAML reads the key as a number, a date or the like: quote it.",
    ),
    Remedy(
        "uses the environment variable …, which is not set",
        "Set the variable where the gateway starts: `env` of the container, `Environment=` of the "
        "systemd unit.",
    ),
    Remedy(
        "has a ${ that is not a variable",
        "A brace is not closed, the name has other characters than letters, digits and `_`, or the "
        "default contains another variable. Write `$${` for a literal `${`.",
    ),
)

VALUES = (
    Remedy(
        "is not in a folder that exists",
        "The gateway creates the audit file, but not the folder of that file.",
    ),
    Remedy(
        "is no folder, nor in one",
        "The gateway creates the folder of usage records, but not its parent folder.",
    ),
    Remedy(
        "is not a URL of HTTP",
        "The gateway sends OTLP over HTTP, usually to port 4318, and not over gRPC (port 4317).",
    ),
    Remedy(
        "is not secured by TLS",
        "`http` is allowed only for a server on this machine: elsewhere an attacker could respond "
        "in its place.",
    ),
    Remedy(
        "contains a user or password; https://host/path",
        "URLs appear in logs. To fetch tokens the gateway sends `client_id` and the secret in "
        "`client_secret_file`.",
    ),
    Remedy(
        "leave too little memory for the rest; lower",
        "You can also remove `collected`, `handshakes` and `held`: their defaults are parts of "
        "`buffered`.",
    ),
    Remedy(
        "has options, which are not supported",
        "Delete the part of the URL from `?` or `#` on; [settings of the "
        "store](configuration.md#store) replace some options.",
    ),
)

LISTENERS_AND_CLUSTERS = (
    Remedy(
        "is missing; clients of kafka connect to each broker",
        "[`advertise`](protocols/kafka.md#addresses) gives each broker an address that leads to "
        "the gateway.",
    ),
    Remedy(
        "moves clients to gateways that cannot open this one's names",
        "`connection_age` needs several gateways behind one address that share "
        "[seal keys](configuration.md#names-and-seal-keys). For a single gateway delete the "
        "setting.",
    ),
    Remedy(
        "lets nobody do anything",
        "With `access: closed` or `shadow`, write rules that say "
        "[who may do what](rules.md#who-may-do-what).",
    ),
    Remedy(
        "has a scheme that is not known; pulsar://",
        "`http://` is the URL of Pulsar's admin service: use the port `brokerServicePort`, usually "
        "6650.",
    ),
    Remedy(
        "has the same broker twice",
        "A URL without a port means the protocol's default port: `pulsar://a` is "
        "`pulsar://a:6650`.",
    ),
    Remedy(
        "has no effect: gateways for kafka are reached as brokers are",
        "List the gateway that this gateway connects to in `brokers`, and its ports in `targets`.",
    ),
    Remedy(
        "has no effect: no listener of the cluster verifies clients",
        "In `pass-through` the gateway knows no principals. Set another mode, or delete "
        "`principal`.",
    ),
)

TLS = (
    Remedy(
        "has no effect: no broker's URL says TLS",
        "Also use the brokers' port with TLS, usually 6651, or 9093 for Kafka.",
    ),
    Remedy(
        "… holds no certificate in PEM form",
        "The setting names another file, perhaps the key, or the file is in DER form: "
        "`openssl x509 -inform der -in FILE -out FILE.pem` converts it.",
    ),
    Remedy(
        "The key file … holds no private key in PEM form",
        "The setting names another file, perhaps the certificate, or the file is in DER form: "
        "`openssl pkey -inform der -in FILE -out FILE.pem` converts it.",
    ),
    Remedy(
        "The file of revoked certificates … holds no list in PEM form",
        "If the file is in DER form, `openssl crl -inform der -in FILE -out FILE.pem` converts it.",
    ),
    Remedy(
        "OpenSSL cannot use the certificate in … with the key in …",
        "One of the files is truncated, or TLS cannot use keys of this kind.",
    ),
    Remedy(
        "The names in the certificate file … cannot be read",
        "The certificate violates the standard, for example by a host name that is not ASCII.",
    ),
)

IDENTITY = (
    Remedy(
        "would let anybody be one of them, with anonymous",
        "Clients without a credential would count as trusted proxies: give proxies a listener of "
        "their own.",
    ),
    Remedy(
        "is missing; verifying needs a key",
        "If clients have no tokens, verify clients in another way, such as `tls` or `basic`, or "
        "set `mode: pass-through`.",
    ),
    Remedy(
        "is not offered to clients without TLS",
        "PLAIN without TLS shows the password to everybody on the network path; "
        "[SCRAM](configuration.md#passwords-that-are-not-shown) does not send it.",
    ),
    Remedy(
        "is the same as of …; tokens must tell their issuers apart",
        "Two entries of `issuers` have the same `issuer`, or both have none. Set each `issuer` to "
        "the claim `iss` of its tokens.",
    ),
    Remedy(
        "cannot be discovered: …",
        "`discovery` fetches keys from below the URL in `issuer`, which is also the claim `iss` of "
        "tokens.",
    ),
    Remedy(
        "has no effect: each of issuers has its own",
        "Write the setting into each entry of `issuers`. Outside the entries it applies only to a "
        "key that is outside them too.",
    ),
    Remedy(
        "names the group …, which match does not have",
        "In the regular expression `match`, put the part of the name that the group means in "
        "brackets.",
    ),
    Remedy(
        "does not fit the kind of key",
        "The algorithms `HS…` need a secret, all other algorithms a public key.",
    ),
    Remedy(
        "A token key (…) fits none of the algorithms",
        "An elliptic curve needs `ES…`, an RSA key `RS…` or `PS…`, an Ed25519 key `EdDSA`. A "
        "secret must be as long as the hash: 48 bytes for `HS384`, 64 bytes for `HS512`.",
    ),
)

KEYS = (
    Remedy(
        "The token secret file … holds … bytes",
        "Tokens that were signed with the short secret must be issued again too.",
    ),
    Remedy(
        "… begins with data:;base64,",
        "Base64 must follow on the same line: `base64 -w0 KEY` writes it.",
    ),
    Remedy(
        "The token public key file … holds a private key",
        "A private key can sign tokens: remove it from the gateway's machine.",
    ),
    Remedy(
        "The key set file … holds no JSON Web Key Set",
        'A key set is `{"keys": [...]}`, also around a single key. Name a key in PEM form by '
        "`public_key_file`.",
    ),
    Remedy(
        "The key set file … holds no key that verifies signatures",
        "The gateway uses RSA keys of at least 2048 bits and keys of P-256, P-384, P-521 and "
        "Ed25519. It ignores secrets, and keys marked for encryption.",
    ),
    Remedy(
        "The credentials file …",
        "A line must be `name:mechanism:iterations:salt:stored key:server key`, as "
        "[this command](configuration.md#passwords-that-are-not-shown) writes it.",
    ),
    Remedy(
        "The passwords file … for the connection to the brokers",
        'A principal has an entry like `alice: {username: alice-at-kafka, password: "of alice"}`.',
    ),
    Remedy(
        "The console's token file …",
        r"`head -c 24 /dev/urandom \| base64 > console.token` makes a valid file.",
    ),
    Remedy(
        "The pseudonym key file …",
        "`head -c 32 /dev/urandom > pseudonym.key` makes a valid file. With a short key attackers "
        "could guess names.",
    ),
)

START = (
    Remedy(
        "cannot listen on …: address already in use",
        "`ss -ltnp` shows the program that uses the port, often another gateway or a broker.",
    ),
    Remedy(
        "cannot listen on …: permission denied",
        "Ports below 1024 need a capability, `AmbientCapabilities=CAP_NET_BIND_SERVICE` in "
        "systemd, `NET_BIND_SERVICE` in a container.",
    ),
    Remedy(
        "cannot …: too many open files",
        "Allow twice as many files as `limits.connections`, and 1,000 more (`LimitNOFILE=` in "
        "systemd).",
    ),
)

RULES = (
    Remedy(
        "rules: has no files of rules in it",
        "In a folder of rules only `*.yaml` and `*.yml` are read, and no subfolder.",
    ),
    Remedy(
        "cannot limit … by …, which is not known then",
        "A new connection has no topic yet, and only consumers have a subscription.",
    ),
    Remedy(
        "names a topic as no client may name one",
        "The name lacks a part or has a slash too many. A pattern for topics has `*`.",
    ),
)

PIPELINE = (
    Remedy(
        "…: there is no such folder, or no right to see it",
        "Name the folder that contains the folders `usage` and `events`, not one of these two. The "
        "user must have the right to enter all folders above it.",
    ),
    Remedy(
        "…://…: cannot be read: …",
        "After `ConsumerBusy`, wait for the other run that uses the subscription. After "
        "`AuthorizationError`, give the token's role the right to consume.",
    ),
    Remedy(
        "Spark has run out of memory",
        "Double `--memory`, up to three quarters of the machine's memory.",
    ),
    Remedy(
        "Spark's process was killed",
        "`dmesg` or the state of the container says whether memory was short. The process needs "
        "half a gigabyte more than `--memory`, which bounds Java's heap.",
    ),
    Remedy(
        "…: has vanished while it was read",
        "Perhaps a gateway removed the file, because `usage.disk` is too small.",
    ),
    Remedy(
        "Spark has no …, which this URL needs",
        "[Where jobs run](pipeline.md#where-jobs-run) names the package for `s3a://`.",
    ),
    Remedy(
        "--month …: its days before … are gone",
        "`retain --even-unbilled` removed days of a month that was not closed; the remaining days "
        "make no bill. If the records still exist, ingest them into new tables.",
    ),
    Remedy(
        "… cannot be closed: … missing, on …",
        "Ingest the files that gateways still have. Lines in the table `quarantine` count as "
        "missing, and so do records that `usage.disk` removed, and those of a process before its "
        "first file that was ingested: only you can say whether to bill without them.",
    ),
)

SECTIONS = (
    Section("The file", FILE),
    Section("Values", VALUES),
    Section("Listeners and clusters", LISTENERS_AND_CLUSTERS),
    Section("TLS", TLS),
    Section("Identity", IDENTITY),
    Section("Files of keys and passwords", KEYS),
    Section("Start", START),
    Section("Rules", RULES, "Other messages about a [rule file](rules.md) are like those above."),
    Section("The pipeline", PIPELINE),
)


def written() -> str:
    """Return the page of now."""
    return HEAD + "".join(f"{line}\n" for section in SECTIONS for line in _lines(section))


def _lines(section: Section) -> Iterator[str]:
    yield from ("", f"## {section.title}", "")
    if section.note:
        yield from (section.note, "")
    yield from ("| Message | What to do |", "|---|---|")
    yield from (f"| `{it.message}` | {it.text} |" for it in section.remedies)


if __name__ == "__main__":
    PAGE.write_text(written(), encoding="utf-8")
    print("written: docs/errors.md")
