"""Playbooks of TubeMQ: what peers say, and what the gateway makes of it."""
