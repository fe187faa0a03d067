"""How long things may take on a busy machine. Scenes go on as soon as they are done."""

TEST_SECONDS = 180
PATIENCE = 60
"""Seconds for one step, such as an operation of a client."""
