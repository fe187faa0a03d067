"""All that waits: accepting, the opening of connections, dialling, chasing lookups, the drain."""
