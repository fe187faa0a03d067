"""One battery for the scanners of all protocols.

`battery.py` knows what any scanner must do, and no protocol. A protocol takes part with a module of
samples (`pulsar.py`) that is listed in `specs.py`.
"""
