"""All waiting for peers: accepting, opening connections, dialling, chasing lookups, the drain."""
