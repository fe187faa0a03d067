"""The protocol of Apache Kafka. So far its messages: what stands where in which version."""
