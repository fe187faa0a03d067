"""The pages agree with the code: examples, settings, metrics, end reasons, links."""

from __future__ import annotations

import pickle
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from pydantic import create_model
from pydantic.fields import FieldInfo

from gateway.app import check
from gateway.config.load import load
from gateway.pipeline.billing import prices
from gateway.telemetry.families import FAMILIES, SECTIONS, Kind
from gateway.wire.contract import EndReason
from tests.docs import budgets, diagram, metrics, regions, settings
from tests.support.faults import assert_none
from tests.support.metrics import exposition
from tests.support.named_files import contents, named
from tests.support.plain import said_of

ROOT = Path(__file__).resolve().parents[2]
WHOLE = ROOT / "docs" / "configuration.yaml"
OPERATING = ROOT / "docs" / "operating.md"


NO_PAGES = (".", "build", "dist")
"""Beginnings of folders that are made, not written."""


def _pages() -> list[Path]:
    """All pages of the repository, those that are not committed yet too."""
    folders = (it for it in ROOT.iterdir() if not it.name.startswith(NO_PAGES) and it.is_dir())
    return sorted([*ROOT.glob("*.md"), *(page for it in folders for page in it.rglob("*.md"))])


def _named(path: Path) -> str:
    return str(path.relative_to(ROOT))


# -- tables ----------------------------------------------------------------------------------


class Row(NamedTuple):
    """One line of a table, by its columns' names. `heading`: of the section it stands in."""

    heading: str
    cells: Mapping[str, str]


def _rows(page: Path, first_column: str) -> list[Row]:
    """The rows of all tables of a page whose first column has this name."""
    heading, columns, rows = "", list[str](), list[Row]()
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            heading = line.lstrip("# ")
        if not line.startswith("|"):
            columns = []
        elif not columns:
            columns = _cells(line)
        elif columns[0] == first_column and not line.startswith("|---"):
            rows.append(Row(heading, dict(zip(columns, _cells(line), strict=True))))
    return rows


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def _codes(cell: str) -> list[str]:
    """What stands in backticks."""
    return re.findall(r"`([^`]+)`", cell)


# -- examples --------------------------------------------------------------------------------


class Example(NamedTuple):
    name: str
    text: str


def _examples() -> list[Example]:
    return list(_whole_files())


def _whole_files() -> Iterator[Example]:
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        blocks = re.findall(r"^```yaml\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
        whole = (
            block
            for block in blocks
            if re.search("^version:", block, re.MULTILINE)
            and not _is_of_rules(block)
            and not _is_of_prices(block)
        )
        for number, block in enumerate(whole, start=1):
            yield Example(f"{_named(page)}-{number}", block)
    yield Example(_named(WHOLE), WHOLE.read_text(encoding="utf-8"))


def _is_of_rules(text: str) -> bool:
    return re.search("^rules:$", text, re.MULTILINE) is not None


def _is_of_prices(text: str) -> bool:
    return re.search("^currency:", text, re.MULTILINE) is not None


def _rate_cards() -> list[str]:
    page = (ROOT / "docs" / "pipeline.md").read_text()
    blocks = re.findall(r"^```yaml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    return [block for block in blocks if _is_of_prices(block)]


@pytest.mark.parametrize("text", _rate_cards())
def test_an_example_of_prices_is_right(text: str) -> None:
    assert prices.read(text, Path("prices.yaml")).currency.code == "EUR"


@pytest.fixture(scope="module")
def held() -> Mapping[str, bytes]:
    return contents()


@pytest.mark.usefixtures("own_log")
@pytest.mark.parametrize("example", _examples(), ids=lambda example: example.name)
def test_an_example_of_a_whole_file_is_right(
    example: Example, held: Mapping[str, bytes], tmp_path: Path
) -> None:
    path = _written(example, held, tmp_path)
    assert check(path).startswith(f"{path}: ok")


@pytest.mark.tier("test")
def test_a_process_that_serves_has_the_settings_of_all_examples(
    held: Mapping[str, bytes], tmp_path: Path
) -> None:
    whole = [it for it in _examples() if "rules" not in yaml.safe_load(it.text)]
    settings = [load(_written(it, held, tmp_path / it.name.replace("/", "-"))) for it in whole]
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.plain"],
        input=pickle.dumps(settings),
        capture_output=True,
        check=True,
        cwd=ROOT,
        timeout=60,
    )
    assert done.stdout.decode() == "".join(f"{said_of(it)}\n" for it in settings)


def _written(example: Example, held: Mapping[str, bytes], folder: Path) -> Path:
    """Write an example, and the files that it names."""
    path = folder / "gateway.yaml"
    settings = yaml.safe_load(example.text)
    files = {path.name: example.text.encode(), **dict(named(settings, held))}
    if "rules" in settings:
        tenants = (ROOT / "rules" / "tenants.yaml").read_bytes()
        files[f"{settings['rules']}/tenants.yaml"] = tenants
    for name, content in files.items():
        file = folder / name
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(content)
    return path


def test_there_are_examples() -> None:
    pages = [example.name.partition("-")[0] for example in _examples()]
    assert pages.count("README.md") >= 1
    assert pages.count("docs/configuration.md") >= 4


def test_the_whole_file_has_every_setting() -> None:
    found = set(_keys(yaml.safe_load(WHOLE.read_text(encoding="utf-8"))))
    known = {setting.name for section in settings.sections() for setting in section.settings}
    assert known <= found


def _keys(part: object) -> Iterator[str]:
    if isinstance(part, dict):
        yield from part
    if isinstance(part, dict | list):
        entries = part.values() if isinstance(part, dict) else part
        yield from chain.from_iterable(_keys(entry) for entry in entries)


# -- settings --------------------------------------------------------------------------------


def test_every_setting_says_what_it_means() -> None:
    assert_none(
        f"{section.path}.{setting.name}".lstrip(".")
        for section in settings.sections()
        for setting in section.settings
        if not setting.meaning.endswith(".")
    )


def test_each_part_of_the_file_says_what_it_is() -> None:
    assert_none(it.path for it in settings.sections() if not vars(it.part)["__doc__"])


def test_a_default_is_shown_as_a_file_may_have_it() -> None:
    shown = [
        (f"{section.path}.{it.name}", it.field, text.strip("`"))
        for section in settings.sections()
        for it in section.settings
        if (text := settings.default_of(it.field)).startswith("`")
    ]
    assert len(shown) > 50
    assert_none(
        f"{place}: {text}"
        for place, field, text in shown
        if _read(field, yaml.safe_load(text)) != _default(field)
    )


def _default(field: FieldInfo) -> object:
    return field.get_default(call_default_factory=True, validated_data={})


def _read(field: FieldInfo, value: object) -> object:
    """Validate a value of one setting alone."""
    fields: dict[str, Any] = {"value": (field.annotation, field)}
    alone: Any = create_model("Alone", **fields).model_validate({field.alias or "value": value})
    return alone.value


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("listeners[].tls.minimum", '`"1.2"`, `"1.3"`; `"1.2"`'),
        ("listeners[].trace", "list of networks"),
        ("listeners[].tls.certificates", "list of [mappings](#listenerstlscertificates); required"),
        ("listeners[].identity.token.algorithms", "list of algorithms; `[RS256]`"),
        ("clusters.<name>.names", "[mapping](#clustersnamenames); `{sealed: {}}`"),
        ("deadlines.idle", "duration, 1s\N{EN DASH}1h; `2m`"),
        ("limits.buffered", "size, 1MiB\N{EN DASH}64GiB; `256MiB`"),
        ("otlp.share", "number, 0.0\N{EN DASH}1.0; `1.0`"),
        ("store.prefix", 'text; `"gateway:"`'),
        ("rules", "list of files or folders"),
    ],
)
def test_the_value_of_a_setting_is_shown_with_its_bounds_and_default(name: str, shown: str) -> None:
    path, _, last = name.rpartition(".")
    (section,) = (it for it in settings.sections() if it.path == path)
    (setting,) = (it for it in section.settings if it.name == last)
    assert settings.value_of(setting, path) == shown


OBVIOUS = {"algorithm", "file or folder", "folder", "new file", "number", "port", "text", "URL"}
"""Kinds of values that the page does not describe."""


def test_kinds_of_values_are_described() -> None:
    described = {row.cells["value"] for row in _rows(settings.PAGE, "value")}
    kinds = (it.partition(",")[0] for it in (*settings.KINDS.values(), *settings.PATHS.values()))
    assert {it for it in kinds if "`" not in it} == (described - {"with `{n}`"}) | OBVIOUS


# -- metrics, end reasons, logs --------------------------------------------------------------


def _sample(samples: dict[str, str], name: str, kind: str) -> str:
    """Return the labels of a metric; of a histogram those beside `le`."""
    return samples[f"{name}_count" if kind == "histogram" else name]


def test_every_metric_is_declared_and_every_declared_one_is_written() -> None:
    text = exposition()
    kinds = dict(re.findall(r"^# TYPE (\w+) (\w+)$", text, re.MULTILINE))
    samples = dict(re.findall(r"^(\w+)(?:\{(.*)\})? \S+$", text, re.MULTILINE))
    written = {
        (name, kind, frozenset(re.findall(r'(\w+)="', _sample(samples, name, kind))))
        for name, kind in kinds.items()
    }
    declared = {
        (name, "gauge" if it.kind == "info" else it.kind, frozenset(it.labels))
        for name, it in FAMILIES.items()
    }
    assert written == declared


@pytest.mark.parametrize(
    "module", [metrics, settings, diagram, budgets], ids=lambda it: it.PAGE.stem
)
def test_the_regions_of_a_page_are_generated(module: Any) -> None:
    page = module.PAGE.read_text(encoding="utf-8")
    assert regions.names(page) == list(module.TEXTS)
    assert page == regions.filled(page, module.TEXTS), "make metrics diagram"


def test_names_tell_the_types_of_metrics_as_the_page_says() -> None:
    latency = next(it for it in SECTIONS if it.title == "Latency")
    for name, family in FAMILIES.items():
        assert (family.kind is Kind.COUNTER) == name.endswith("_total")
        assert (family.kind is Kind.HISTOGRAM) == (family in latency.families)


@pytest.mark.tier("test")
def test_prometheus_finds_no_fault_in_the_metrics() -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed (Debian's package: prometheus)")
    command = [promtool, "check", "metrics"]
    found = subprocess.run(command, input=exposition(), capture_output=True, text=True, check=False)
    assert (found.returncode, found.stdout, found.stderr) == (0, "", "")


def test_every_end_reason_is_documented_and_no_other() -> None:
    documented = [_codes(row.cells["Reason"])[0] for row in _rows(OPERATING, "Reason")]
    assert documented == [reason.value for reason in EndReason]


def test_everyday_end_reasons_are_marked() -> None:
    from gateway.front.server import _ORDINARY

    rows = [row.cells["Reason"] for row in _rows(OPERATING, "Reason")]
    assert {_codes(cell)[0] for cell in rows if cell.endswith("*")} == set(_ORDINARY)


def test_every_event_of_the_log_is_documented_and_no_other() -> None:
    audited = ROOT / "gateway" / "telemetry" / "audit.py"
    sources = [it.read_text() for it in (ROOT / "gateway").rglob("*.py") if it != audited]
    levels = r"log\.(?:info|warning|error)\(\s*\"(\w+)\""
    logged = {event for text in sources for event in re.findall(levels, text)}
    documented = {it for row in _rows(OPERATING, "Event") for it in _codes(row.cells["Event"])}
    assert logged
    assert logged <= documented
    assert_none(it for it in documented if not any(f'"{it}"' in text for text in sources))


# -- links -----------------------------------------------------------------------------------


def test_links_lead_somewhere() -> None:
    assert_none(
        f"{_named(page)}: {link}"
        for page in _pages()
        for link in re.findall(
            r"\]\(([^)\s]+)\)", _without_blocks(page.read_text(encoding="utf-8"))
        )
        if "://" not in link and not _leads_somewhere(page, link)
    )


def test_tests_that_pages_name_exist() -> None:
    assert_none(
        f"{_named(page)}: {path}{name}"
        for page in _pages()
        for path, name in re.findall(
            r"`(tests/[\w./]+)((?:::\w+)?)`", page.read_text(encoding="utf-8")
        )
        if not _has_test(ROOT / path, name.removeprefix("::"))
    )


def _has_test(path: Path, name: str) -> bool:
    """Whether a file or folder exists, and has a test of this name, if one is given."""
    return path.exists() and (not name or f"def {name}(" in path.read_text(encoding="utf-8"))


def _leads_somewhere(page: Path, link: str) -> bool:
    name, _, anchor = link.partition("#")
    target = (page.parent / name).resolve() if name else page
    if not target.exists() or not anchor:
        return target.exists()
    headings = re.findall("^#+ (.*)$", _without_blocks(target.read_text()), re.MULTILINE)
    return anchor in {_anchor(heading) for heading in headings}


def _anchor(heading: str) -> str:
    """As GitHub makes them."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _without_blocks(text: str) -> str:
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
