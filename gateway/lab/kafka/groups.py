"""Consumer groups."""


class Groups:
    """None yet."""
