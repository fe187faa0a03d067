"""Says whether settings check themselves in this process; see `parts`."""

checks = True
"""True: settings check themselves. A process that takes over checked settings sets it to False
before it imports the model."""
