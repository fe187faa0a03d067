from typing import Any

from gateway.compiled.walker import Walker

class ReplyWalker(Walker):
    lead: Any
    is_armed: bool
    left: int
    def __init__(self, pending: Any, services: Any, count: Any) -> None: ...
    def begin(self, chunk: bytearray, pos: int, end: int) -> int: ...
    def read(self, chunk: bytearray, pos: int, end: int) -> int: ...
