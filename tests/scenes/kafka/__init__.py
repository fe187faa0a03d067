"""Kafka: what users notice, on one broker."""
