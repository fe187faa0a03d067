"""TubeMQ on one master with two brokers."""
