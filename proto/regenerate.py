"""Writes the modules of each `_proto` package from the .proto files beside this script.

    python proto/regenerate.py              after any change of a .proto file
    python proto/regenerate.py DIRECTORY    the same tree below DIRECTORY, to compare

The tools are the `proto` extra, at its pinned versions only. Generated code refuses a protobuf
runtime older than its generator, so a newer generator would narrow the range of runtimes that the
gateway can be installed beside.
"""

import subprocess
import sys
import sysconfig
import tomllib
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
PACKAGES = {
    "gateway/wire/pulsar/_proto": "pulsar_*.proto",
    "gateway/wire/tubemq/_proto": "tubemq_*.proto",
    "gateway/pipeline/ledgers/_proto": "managed_ledger.proto",
}
"""The pattern of the .proto files of each package. protoc sees proto/ at the package's path, and
writes its imports and its output accordingly."""


def missing_tools() -> list[str]:
    """The pins of the `proto` extra that this Python does not have, as `name==version`."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return [
        pin
        for pin in project["optional-dependencies"]["proto"]
        if not is_installed(*pin.split("=="))
    ]


def is_installed(name: str, wanted: str) -> bool:
    try:
        return version(name) == wanted
    except PackageNotFoundError:
        return False


def generate(target: Path) -> None:
    """Write modules and stubs below `target`, which stands for the root of the checkout.

    The stubs are mypy-protobuf's: protoc's own are not valid Python here, as `Schema.Type` has a
    value named `None`.
    """
    target.mkdir(parents=True, exist_ok=True)
    plugin = Path(sysconfig.get_path("scripts")) / "protoc-gen-mypy"
    for package, pattern in PACKAGES.items():
        sources = sorted(HERE.glob(pattern))
        command = [
            *(sys.executable, "-m", "grpc_tools.protoc"),
            f"-I{package}={HERE}",
            f"--plugin=protoc-gen-mypy={plugin}",
            f"--python_out={target}",
            f"--mypy_out=quiet:{target}",
            *(f"{package}/{source.name}" for source in sources),
        ]
        subprocess.run(command, check=True)


def main(arguments: list[str]) -> None:
    if missing := missing_tools():
        sys.exit(f"proto/regenerate.py needs {' and '.join(missing)}: pip install '.[proto]'")
    generate(Path(arguments[0]) if arguments else ROOT)


if __name__ == "__main__":
    main(sys.argv[1:])
