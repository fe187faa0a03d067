"""The protocol of Apache Pulsar: its frames and commands, and what the gateway changes in them."""
