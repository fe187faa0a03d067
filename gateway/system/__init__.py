"""Reads what the machine allows a process, and handles signals and child processes."""
