"""Kafka's protocol: the layout of its messages, and what the gateway reads and changes in them."""
