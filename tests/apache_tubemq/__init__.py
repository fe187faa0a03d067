"""A real TubeMQ, of a master and two brokers, and what Java clients see of it."""
