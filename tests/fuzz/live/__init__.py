"""Hostile clients and a hostile broker, with a running gateway between them.

`streams`: what they say. `peers`: how they behave. `siege`: many of them, round after round, and
what the gateway must look like when a round is over. `python -m tests.fuzz.live --frames N`.
"""
