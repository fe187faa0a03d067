"""The gateway between real clients and real brokers. `conftest.py` tells how these tests
are run.
"""
