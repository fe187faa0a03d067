"""A model broker, model clients, and the session between them.

The same world runs twice: once with the gateway's session between client and broker, once with
nothing. What must hold of it holds of both, so the gateway loses, doubles and reorders nothing
that a direct connection would not.
"""
