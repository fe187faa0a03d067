"""Brokers' own decoders as judges: what reaches a broker it understands as the gateway did."""
