"""What Kafka's own classes say of what the gateway finds in frames, and makes of them."""
