"""Who asks: what clients prove themselves with, and what we prove ourselves with towards brokers.

`keys` and `token` load joserfc and cryptography; import them only where tokens are verified.
"""
