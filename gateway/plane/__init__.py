"""The data plane: moves bytes between the two sockets of each open pair. Synchronous throughout.

Terms: a *lane* is one peer's socket; a *pump* moves one direction of a pair, from a source lane
to a sink lane; the *reactor* waits for all lanes at once and calls their pumps. This package knows
no protocol: a pump asks its scanner how many bytes may be forwarded, and its session what to do
with the rest.
"""
