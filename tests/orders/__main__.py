"""Play the scripts of some files, or all, against a new broker, and print its answers:

    python -m tests.orders 4.2.4 [FILE ...]

Use it for new scripts: written without answers, they are printed with those of one run. Where runs
or versions differ, mark it in the record (`~`, `|`).
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.real.brokers.jars import pulsar_jars
from tests.real.brokers.standalone import Standalone

from .real import play_all
from .script import RECORDED, read_scripts, written


def main(version: str, *files: str) -> None:
    paths = [Path(file) for file in files] or sorted(RECORDED.glob("*.txt"))
    with tempfile.TemporaryDirectory() as directory:
        broker = Standalone(pulsar_jars(print, version), Path(directory))
        broker.start()
        try:
            for path in paths:
                scripts = read_scripts(path)
                played = play_all(broker.service_url, broker.admin, scripts)
                runs = zip(scripts, played, strict=True)
                print("\n\n".join(written(script, heard) for script, heard in runs))
        finally:
            broker.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
