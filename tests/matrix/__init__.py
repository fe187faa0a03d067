"""The clients' scenes in all configurations of the gateway, beside a direct connection."""
