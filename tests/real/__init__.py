"""The gateway between real clients and real brokers. `fixtures.py` says how to run these tests."""
