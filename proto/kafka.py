"""Writes gateway/wire/kafka/_messages.py from the message definitions of two Kafka releases.

    python proto/kafka.py kafka-clients-4.3.1.jar kafka-clients-3.9.1.jar    after a new release

With `-` behind them the module is printed, to compare.

The jars are `org.apache.kafka:kafka-clients` of Maven Central, which carry the definitions: the
latest release, and the last one that has the versions which Kafka 4.0 removed (KIP-896). A new
release is one run, and a difference to read: what has an address, and which request is new, is
judged by tests/unit/wire/kafka.
"""

from __future__ import annotations

import json
import re
import sys
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

TARGET = Path(__file__).resolve().parents[1] / "gateway" / "wire" / "kafka" / "_messages.py"
FOLDER = "common/message/"

NEVER = 32767
"""The last version that a request can name stands for one that never comes."""

Definition = dict[str, Any]
Range = tuple[int, int]

_COMMENT = re.compile(r"^\s*//.*$", re.MULTILINE)

HEAD = '''"""Made by proto/kafka.py of the messages of Kafka {release} and {before}: do not edit.

`APIS`, by key: the name, where it is offered, and the schemas of request and response. A schema:
the first and the last version, the first flexible one, and the fields, each with its name, type,
first and last version, first version in which it may be null, first version in which it is tagged,
its tag, what it names (topicName, groupId), and the fields of its struct. {never} is a version that
never comes.
"""

RELEASE = "{release}"

# fmt: off
APIS = {{
'''


def definitions(jar: Path) -> Iterator[Definition]:
    """Yield all definitions of requests and responses."""
    with zipfile.ZipFile(jar) as archive:
        for name in sorted(archive.namelist()):
            if name.startswith(FOLDER) and name.endswith(".json"):
                found = json.loads(_COMMENT.sub("", archive.read(name).decode()))
                if found["type"] in {"request", "response"}:
                    yield found


def versions(text: str) -> Range:
    """Return the first and the last version of `3`, `3-7`, `3+` or `none`."""
    if text == "none":
        return NEVER, -1
    first, dash, last = text.removesuffix("+").partition("-")
    if text.endswith("+"):
        return int(first), NEVER
    return int(first), int(last if dash else first)


def since(text: str, first: int, last: int) -> int:
    """Return the version from which on something holds for a field of these versions. Raises
    ValueError if it holds no more in a later one, for which the tables have no place."""
    begin, end = versions(text)
    if begin > last or end < first:
        return NEVER
    if end < last:
        raise ValueError(f"{text} ends before version {last}")
    return begin


def merged(latest: Definition, before: Definition) -> Definition:
    """Return a definition of a message in all versions of two releases."""
    begin = versions(latest["validVersions"])[0]
    first, last = versions(before["validVersions"])[0], versions(latest["validVersions"])[1]
    structs = {it["name"]: it for it in before.get("commonStructs", ())}
    structs |= {
        it["name"]: {**it, "fields": _merged(it, structs.get(it["name"], {}), begin)}
        for it in latest.get("commonStructs", ())
    }
    return {
        **latest,
        "validVersions": f"{min(begin, first)}-{last}",
        "commonStructs": list(structs.values()),
        "fields": _merged(latest, before, begin),
    }


def _merged(latest: Definition, before: Definition, begin: int) -> list[Definition]:
    """Return the fields of a struct, in the order of both releases. `begin`: the first version of
    the latest one."""
    rest = [*latest.get("fields", ())]
    fields: list[Definition] = []
    for old in before.get("fields", ()):
        if all(it["name"] != old["name"] for it in rest):
            first, last = versions(old["versions"])
            fields.append({**old, "versions": f"{first}-{min(last, begin - 1)}"})
            continue
        while rest[0]["name"] != old["name"]:
            fields.append(_from(rest.pop(0), begin))
        fields.append(_both(rest.pop(0), old, begin))
    return fields + [_from(it, begin) for it in rest]


def _from(field: Definition, begin: int) -> Definition:
    """Return a field that only the latest release has, without versions of before."""
    first, last = versions(field["versions"])
    return {**field, "versions": f"{max(first, begin)}-{last}"}


def _both(field: Definition, old: Definition, begin: int) -> Definition:
    """Return a field of both releases."""
    both = {**field}
    for name in ("versions", "nullableVersions"):
        if name in field and name in old:
            first, last = versions(field[name])
            both[name] = f"{min(first, versions(old[name])[0])}-{last}"
    if "fields" in field:
        both["fields"] = _merged(field, old, begin)
    return both


class Writer:
    """Writes the schemas of one message after the other. `lines`: what it has written."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def schema(self, definition: Definition) -> None:
        """Write the schema of a request or a response."""
        known = {it["name"]: it["fields"] for it in definition.get("commonStructs", ())}
        first, last = versions(definition["validVersions"])
        flexible = versions(definition.get("flexibleVersions", "none"))[0]
        self.lines.append(f"        ({first}, {last}, {flexible}, (")
        self._fields(definition["fields"], known, (first, last), 3)
        self.lines.append("        )),")

    def _fields(
        self, fields: list[Definition], known: Mapping[str, Any], within: Range, depth: int
    ) -> None:
        indent = "    " * depth
        for it in fields:
            first, last = versions(it["versions"])
            first, last = max(first, within[0]), min(last, within[1])
            if first > last:
                continue
            kind = it["type"].removeprefix("[]")
            inner = it.get("fields") or known.get(kind)
            array = "[]" if it["type"].startswith("[]") else ""
            nullable = since(it.get("nullableVersions", "none"), first, last)
            tagged = since(it.get("taggedVersions", "none"), first, last)
            kind = f"{array}{{}}" if inner else f"{array}{kind}"
            named = f'"{it["name"]}", "{kind}", {first}, {last}, {nullable}, {tagged}'
            told = f'({named}, {it.get("tag", -1)}, "{it.get("entityType", "")}", ('
            if inner is None:
                self.lines.append(f"{indent}{told})),")
                continue
            self.lines.append(f"{indent}{told}")
            self._fields(inner, known, (first, last), depth + 1)
            self.lines.append(f"{indent})),")


def messages(jar: Path) -> dict[int, dict[str, Definition]]:
    """Return the definitions of a release by API key, of the request and the response."""
    found: dict[int, dict[str, Definition]] = {}
    for it in definitions(jar):
        if versions(it["validVersions"])[1] >= 0:
            found.setdefault(it["apiKey"], {})[it["type"]] = it
    return found


def write(jar: Path, jar_before: Path) -> str:
    """Return the module. Raises `KeyError` if a definition lacks what all have."""
    release, before = (it.stem.rpartition("-")[2] for it in (jar, jar_before))
    found, old = messages(jar), messages(jar_before)
    for key in found.keys() & old.keys():
        first, last = versions(old[key]["request"]["validVersions"])
        if first == last and old[key]["request"].get("latestVersionUnstable"):
            continue  # no broker of that release offered the API
        found[key] = {kind: merged(it, old[key][kind]) for kind, it in found[key].items()}
    writer = Writer()
    for key in sorted(found):
        request = found[key]["request"]
        name = request["name"].removesuffix("Request")
        offered = "".join(f'"{it}", ' for it in request["listeners"])
        writer.lines.append(f'    {key}: ("{name}", ({offered.rstrip()}),')
        for kind in ("request", "response"):
            writer.schema(found[key][kind])
        writer.lines.append("    ),")
    return (
        HEAD.format(release=release, before=before, never=NEVER) + "\n".join(writer.lines) + "\n}\n"
    )


if __name__ == "__main__":
    module = write(Path(sys.argv[1]), Path(sys.argv[2]))
    if sys.argv[3:] == ["-"]:
        print(module, end="")
    else:
        TARGET.write_text(module, encoding="utf-8")
