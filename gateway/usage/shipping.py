"""The gateway's side of its shipper: starts and restarts the shipper process, sends it credentials,
and reads its reports."""

from __future__ import annotations

import signal
import subprocess
from typing import TYPE_CHECKING

import structlog
import trio

from gateway.system.interpreter import command
from gateway.system.restarts import BackOff
from gateway.telemetry.figures import SentFigures, ShipperFigures
from gateway.usage.shipment import (
    LONGEST,
    REPORTS,
    Away,
    Finish,
    Sent,
    Shown,
    Unreadable,
    Waiting,
    line_of,
)
from gateway.wire.contract import Denial

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from gateway.usage.shipment import Brief
    from gateway.wire.contract import Credential

SHIPPER = "gateway.usage.shipper"

PATIENCE = 5.0
"""Seconds for the last files at the end of the process. To find, open and fill a topic takes one;
files that are left are sent after the next start. Supervisors wait for some 10 beyond the grace
period."""

LOOK = 1.0
"""Seconds between two checks whether the credential has changed. Each takes microseconds."""


class Shipping:
    """Runs the shipper of a gateway. `credential`: returns the current credential for brokers.
    `program`: the command line of the shipper. `patience`: the most seconds that the shipper may
    take to send the last files at the end."""

    def __init__(
        self,
        brief: Brief,
        credential: Callable[[], Credential | Denial],
        *,
        program: Sequence[str] | None = None,
        patience: float = PATIENCE,
    ) -> None:
        self.figures = ShipperFigures({stream: SentFigures() for stream in brief.topics})
        self._brief = brief
        self._credential = credential
        self._program = command(SHIPPER) if program is None else program
        self._patience = patience
        self._finishing = trio.Event()
        self._ended = trio.Event()
        self._is_away = False
        self._log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

    async def during(self, work: Callable[[], Awaitable[None]]) -> None:
        """Keep a shipper running while `work` runs. After `work`, let the shipper send all closed
        files, for at most `patience` seconds."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._run)
            await work()
            self._finishing.set()
            with trio.move_on_after(self._patience):
                await self._ended.wait()
            nursery.cancel_scope.cancel()

    async def _run(self) -> None:
        try:
            back_off = BackOff()
            while True:
                began = trio.current_time()
                outcome = await self._run_process()
                if self._finishing.is_set():
                    return
                self._log.warning("usage_shipper_ended", **outcome)
                with trio.move_on_after(back_off.after(trio.current_time() - began)):
                    await self._finishing.wait()
                self.figures.restarts += 1
        finally:
            self._ended.set()

    async def _run_process(self) -> dict[str, object]:
        """Run one process to its end. Return the log fields that say how it ended."""
        try:
            process = await trio.lowlevel.open_process(
                self._program,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                # Ctrl-C must reach the gateway alone; see `reload.reading`.
                process_group=0,
            )
        except (OSError, subprocess.SubprocessError) as error:
            return {"reason": f"cannot be started: {error}"}
        self._log.info("usage_shipper_started", process=process.pid)
        try:
            await self._converse(process)
            return _outcome(await process.wait())
        except* Exception:  # noqa: BLE001
            # A bug, or a shipper of another version that was installed meanwhile: it is replaced,
            # and clients are not concerned.
            self._log.exception("usage_shipper_failed")
        finally:
            process.kill()
            with trio.CancelScope(shield=True):
                await process.wait()
        return {"reason": "it was not understood"}

    async def _converse(self, process: trio.Process) -> None:
        """Send orders and read reports until the process closes its output."""
        assert process.stdin is not None
        assert process.stdout is not None
        async with process.stdin, process.stdout, trio.open_nursery() as nursery:
            nursery.start_soon(self._tell, process.stdin)
            await self._hear(process.stdout)
            nursery.cancel_scope.cancel()

    async def _tell(self, to: trio.abc.SendStream) -> None:
        try:
            await to.send_all(line_of(self._brief))
            shown: Shown | None = None
            while not self._finishing.is_set():
                shown = await self._show(to, shown)
                with trio.move_on_after(LOOK):
                    await self._finishing.wait()
            await to.send_all(line_of(Finish()))
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass  # it has ended, which is heard

    async def _show(self, to: trio.abc.SendStream, before: Shown | None) -> Shown | None:
        """Send the credential if it has changed; return the one that the process has now."""
        now = self._credential()
        if isinstance(now, Denial):
            return before
        shown = Shown.of(now.method, now.data)
        if shown != before:
            await to.send_all(line_of(shown))
        return shown

    async def _hear(self, source: trio.abc.ReceiveStream) -> None:
        received = bytearray()
        async for chunk in source:
            received += chunk
            *lines, rest = received.split(b"\n")
            for line in lines:
                self._take(bytes(line))
            received = bytearray(rest[:LONGEST])

    def _take(self, line: bytes) -> None:
        match REPORTS.decode(line):
            case Waiting(files):
                for stream, number in files.items():
                    self.figures.streams[stream].waiting = number
            case Sent(stream, records):
                self.figures.streams[stream].records += records
                if self._is_away:
                    self._is_away = False
                    self._log.info("usage_topic_back")
            case Away(reason):
                self.figures.failures += 1
                if not self._is_away:
                    self._is_away = True
                    self._log.warning("usage_topic_away", reason=reason)
            case Unreadable(file):
                self._log.warning("usage_file_unreadable", file=file)


def _outcome(status: int) -> dict[str, object]:
    if status < 0:
        return {"signal": signal.Signals(-status).name}
    return {"status": status}
