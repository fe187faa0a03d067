"""What can be billed: which figure of a tenant's use, in which unit, under which price."""

from __future__ import annotations

from typing import Final, NamedTuple

GB: Final = 10**9
"""Bytes of a GB in prices and on invoices; a GiB would be 2^30."""

HOUR: Final = 3_600_000
"""Milliseconds."""


class Meter(NamedTuple):
    """One figure that has a price.

    `figure`: the field of `amounts.Used`. `price`: the field of `prices.Prices`. `per`: how much of
    the figure is one unit. `unit`: for readers. `focus`: the unit as FOCUS 1.2 writes units.
    `operation`: what clients did; if one of its meters has a price, the operation has one.
    """

    figure: str
    price: str
    per: int
    unit: str
    focus: str
    operation: str
    title: str


METERS: Final = (
    Meter("bytes_in", "gb_in", GB, "GB", "GB", "send", "Data in"),
    Meter("bytes_out", "gb_out", GB, "GB", "GB", "deliver", "Data out"),
    Meter(
        *("msgs_in", "million_messages_in", 10**6, "million messages", "1000000 Messages"),
        *("send", "Messages in"),
    ),
    Meter(
        *("msgs_out", "million_messages_out", 10**6, "million messages", "1000000 Messages"),
        *("deliver", "Messages out"),
    ),
    Meter(
        *("connection_ms", "connection_hour", HOUR, "connection-hours", "Connection-Hours"),
        *("connect", "Open connections"),
    ),
    Meter(
        *("stored_byte_hours", "stored_gb_hour", GB, "GB-hours", "GB-Hours", "store"),
        "Stored data",
    ),
)
"""All meters, in the order of lines on an invoice."""

BY_FIGURE: Final = {it.figure: it for it in METERS}
BY_PRICE: Final = {it.price: it for it in METERS}
