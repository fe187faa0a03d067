"""Which face settings have in this process; see `parts`."""

checks = True
"""Settings check themselves. A process that gets checked settings says otherwise before it imports
the model."""
