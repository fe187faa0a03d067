"""Waits for peers: accepts and opens connections, dials brokers, follows redirects of lookups,
drains."""
