"""Effects of a decision, as tests use them."""

from gateway.wire.contract import Effects, Sliced
from gateway.wire.slices import finished


def at_once(effects: Effects) -> Effects:
    """Return the effects of a decision, whose slices are taken one after the other."""
    if effects and isinstance(effects[0], Sliced):
        assert len(effects) == 1
        return finished(effects[0].steps)
    return effects
