"""Real brokers for tests: fetched by Maven, started on loopback, stopped by process id."""
