"""Orders of events and a broker's answers to each, as recorded in `recorded/`. They are played
against real brokers (`tests/real/test_orders.py`) and against the model broker (`test_model.py`
here).

The model is useful only as far as it behaves like real brokers. A record is played step by step:
what a client sends or an administrator does, and everything that the broker sends in return.
"""
