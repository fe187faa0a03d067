"""Limits: the rules that set them, the accounts under them, and who waits for how long."""
