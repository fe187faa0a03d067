"""A running gateway among hostile peers. Fixed seeds make all randomness repeatable."""
