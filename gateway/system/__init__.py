"""Reads what the machine and a service manager tell the process, and handles signals."""
