"""HTTP for those who run the gateway; never for its clients.

- `server`: a small HTTP/1.1 server on trio and h11
- `turns`: who may stay, and who has a turn, when more come than there is room for
- `routes`: what it answers: liveness, readiness, metrics
"""
