"""A model broker, model clients, and the session between them.

The same world runs twice: with the gateway's session between client and broker, and with nothing
between them. Both runs must pass the same checks, so the gateway loses, doubles and reorders
nothing that a direct connection would not.
"""
