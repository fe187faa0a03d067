"""The job that has a policy agent decide whether a client may use topics."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass
from typing import ClassVar

from gateway.wire.contract import Denial, Refusal, Settle, Step, StepResult

_UNKNOWN = Denial(Refusal.NOT_READY, "whether this client may do this is not known now")


@dataclass(frozen=True, slots=True)
class Questions:
    """The `contract.Job` that asks the policy agent. `asks`: functions that each ask the agent one
    question, and keep its decision in memory for a while."""

    asks: tuple[Callable[[], Awaitable[None]], ...]

    patience: ClassVar[float] = 10.0
    failed: ClassVar[Denial] = _UNKNOWN
    late: ClassVar[Denial] = _UNKNOWN

    def converse(self) -> Generator[Step, StepResult, bytes | Denial]:
        """See `contract.Job`."""
        for ask in self.asks:
            yield Settle(ask)
        return b""
