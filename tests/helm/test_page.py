"""Values that pages show render."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.helm.rendering import CHART, ROOT, rendered_with

pytestmark = pytest.mark.skipif(shutil.which("helm") is None, reason="helm is not installed")

DOCS = ROOT / "docs"
PAGES = (DOCS / "kubernetes.md", CHART / "README.md", DOCS / "operating.md")


def _blocks(page: Path) -> list[str]:
    text = page.read_text(encoding="utf-8")
    return re.findall(r"^```yaml\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def _examples() -> Iterator[str]:
    """Values: not what stands in a template, and not those of another chart."""
    for page in PAGES:
        for block in _blocks(page):
            if "{{" not in block and not block.startswith("broker-gateway:"):
                yield block


EXAMPLES = list(_examples())


@pytest.mark.parametrize("block", EXAMPLES, ids=range(len(EXAMPLES)))
def test_values_that_are_shown_render(block: str, tmp_path: Path) -> None:
    assert "kind: Deployment" in rendered_with(yaml.safe_load(block), tmp_path)
