"""Answers protocol sessions from identity, policy and brokers together."""
