"""Which function of the sandbox handles which command."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.sandbox import consuming, lookups, opening, producing

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gateway.sandbox.session import Handler

HANDLERS: Mapping[int, Handler] = {
    **opening.HANDLERS,
    **lookups.HANDLERS,
    **producing.HANDLERS,
    **consuming.HANDLERS,
}
