"""The folder in which the brokers and gateways of a run write.

Everything goes to one temporary directory, which is removed at the end. If a test failed, the logs
and settings are first copied to `build/real-logs/` of the checkout. Data and keys are never kept.
"""

import re
import shutil
import tempfile
import time
from pathlib import Path

KEPT_SUFFIXES = {".log", ".conf", ".yaml"}
KEPT_UNDER = Path(__file__).resolve().parents[2] / "build" / "real-logs"


class Artifacts:
    def __init__(self) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="broker-gateway-real-"))

    def directory(self, name: str) -> Path:
        """Return a new directory whose name begins like `name`."""
        return Path(
            tempfile.mkdtemp(prefix=re.sub(r"\W+", "-", name).strip("-") + ".", dir=self.root)
        )

    def keep(self) -> Path:
        """Copy the logs, and return their new place."""
        place = KEPT_UNDER / time.strftime("%Y%m%d-%H%M%S")
        for file in self.root.rglob("*"):
            if file.suffix in KEPT_SUFFIXES and file.is_file():
                copy = place / file.relative_to(self.root)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, copy)
        return place

    def discard(self) -> None:
        shutil.rmtree(self.root, ignore_errors=True)
