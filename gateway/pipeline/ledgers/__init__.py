"""Snapshots of what a cluster stores, topic by topic."""
