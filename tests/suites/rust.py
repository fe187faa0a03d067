"""The Rust client's own tests: those of the crate's library, which need one broker."""

import json
import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.real.brokers.jars import Say, cache_root, filled_once, run_tool, tool
from tests.support.differences import Verdict

from .suite import Run, copied, output_of, rewritten
from .systems import Pulsar, System

VERSION = "6.9.1"
SECONDS = 400
"""The tests take about a minute; a hanging one takes all of it."""
BROKER, WEB = "127.0.0.1:6650", "127.0.0.1:8080"
"""Where the crate's tests expect them."""

MANIFEST = f"""\
[package]
name = "fetches-the-client"
version = "0.0.0"
edition = "2021"
[dependencies]
pulsar = "={VERSION}"
"""
RESULT = re.compile(r"^test (\S+)(?: - should panic)? \.\.\. (ok|FAILED|ignored)", re.MULTILINE)
LISTED = re.compile(r"^(\S+): test$", re.MULTILINE)
VERDICTS = {"ok": Verdict.PASSED, "FAILED": Verdict.FAILED, "ignored": Verdict.SKIPPED}


class Rust:
    client = f"pulsar (Rust) {VERSION}"
    system: System = Pulsar({"extra": {"transactionCoordinatorEnabled": "true"}})

    def sources(self, say: Say) -> Path:
        """Fetch the crate, whose build runs protoc."""
        tool("protoc")
        cargo = tool("cargo")

        def fetch(into: Path) -> None:
            say("fetching the Rust client by cargo ...")
            (into / "src").mkdir()
            (into / "src" / "lib.rs").touch()
            (into / "Cargo.toml").write_text(MANIFEST)
            run_tool("cargo", [cargo, "fetch", "--quiet"], cwd=into)
            copied(_place(cargo, into), into / "crate")

        return filled_once(f"rust-suite-{VERSION}", fetch) / "crate"

    def run(self, sources: Path, run: Run) -> Mapping[str, Verdict]:
        words = {BROKER: run.at.broker, WEB: run.at.web}
        crate = rewritten(sources, run.folder / "crate", ".rs", words)
        # One folder for all runs, so that the client's dependencies are built once.
        env = os.environ | {"CARGO_TARGET_DIR": str(cache_root() / "rust-suite-target")}
        test = [tool("cargo"), "test", "--locked", "--lib"]
        run_tool("cargo", [*test, "--no-run"], cwd=crate, env=env)
        chosen = [run.only] * bool(run.only)
        listed = output_of(
            [*test, *chosen, "--", "--list"], crate, run.folder / "list.log", SECONDS, env
        )
        said = output_of([*test, *chosen], crate, run.folder / "tests.log", SECONDS, env)
        return parsed(listed, said)


def _place(cargo: str, package: Path) -> Path:
    """Return where cargo has put the client that the package depends on."""
    command = [cargo, "metadata", "--format-version", "1", "--offline"]
    told = subprocess.run(command, cwd=package, check=True, capture_output=True, text=True)
    packages = json.loads(told.stdout)["packages"]
    found = next(Path(it["manifest_path"]) for it in packages if it["name"] == "pulsar")
    return found.parent


def parsed(listed: str, said: str) -> dict[str, Verdict]:
    """Return the verdicts, parsed from cargo's list of tests and its line for each finished one."""
    ended = {name: VERDICTS[word] for name, word in RESULT.findall(said)}
    return dict.fromkeys(LISTED.findall(listed), Verdict.UNFINISHED) | ended
