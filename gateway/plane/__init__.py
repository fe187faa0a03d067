"""The data plane: moves bytes between the two sockets of each open pair. Synchronous throughout.

Words: a *lane* is one peer's socket; a *pump* moves one direction of a pair, from a source lane
to a sink lane; the *reactor* waits for all lanes at once and calls their pumps. Nothing here
knows a protocol: a pump asks its scanner how many bytes may go on, and its session what to do
with the rest.
"""
