"""The gateway between real clients and real brokers. `fixtures.py` tells how these tests
are run.
"""
