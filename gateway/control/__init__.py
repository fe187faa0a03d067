"""Answers what protocol sessions ask, by identity, policy and brokers together."""
