"""Orders of events, and what a broker makes of each: written down in `recorded/`, played against
real brokers (`tests/real/test_orders.py`) and against the model broker (`test_model.py` here).

The model is only worth something as far as it behaves as brokers do. A record is played step by
step: what a client says, or an administrator does, and all that the broker says in return.
"""
