"""HTTP for operators of the gateway, never for its clients.

- `server`: a small HTTP/1.1 server on trio and h11
- `slots`: bounds connections and long answers
- `routes`: liveness, readiness, metrics
"""
