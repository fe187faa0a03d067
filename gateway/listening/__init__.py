"""Accepts connections for all listeners: of messaging clients, of the console, of the admin
server."""
