from typing import Any

class Room:
    used: int
    bound: int
    ample: int
    size: int
    buffer: bytearray

class Descriptor:
    fd: int
    plain: bool
    pending: Any
    reader: Any

class Mover:
    def __init__(self, scanner: Any) -> None: ...
    def readable(self, now: float) -> None: ...

class Rounds:
    turn_seconds: float
    def serve(self, descriptor: int, linger: int) -> float: ...
