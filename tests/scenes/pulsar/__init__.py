"""Pulsar on one broker."""
