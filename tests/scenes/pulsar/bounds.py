"""How long things may take on a busy machine. Scenes go on as soon as they are done."""

PATIENCE = 60
"""Seconds for one step, such as an operation of a client."""

PROGRAM_SECONDS = 180
"""For a whole program, such as a Java client with its start."""
