"""HTTP for those who run the gateway; never for its clients.

- `server`: a small HTTP/1.1 server on trio and h11
- `routes`: what it answers: liveness, readiness, metrics
"""
