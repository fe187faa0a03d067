"""The clients' scenes in all configurations of the gateway, compared with a direct connection."""
