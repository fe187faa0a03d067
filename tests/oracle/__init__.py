"""Real brokers' decoders as judges: a broker must understand each frame as the gateway did."""
