from typing import Any

from gateway.compiled.counters import AccountTable, Walker

class ToBrokerWalker(Walker):
    distance: int
    def __init__(
        self,
        actions: tuple[int, ...],
        command_bound: int,
        producers: AccountTable[Any],
        *,
        compares: bool,
    ) -> None: ...

class ToClientWalker(Walker):
    def __init__(
        self,
        actions: tuple[int, ...],
        command_bound: int,
        consumers: AccountTable[Any],
        producers: AccountTable[Any],
    ) -> None: ...
