"""The admin HTTP server, for operators and scrapers: liveness, readiness, metrics.

- `server`: a small HTTP/1.1 server on trio and h11
- `slots`: bounds the number of connections, and of long responses
- `routes`: liveness, readiness, metrics
"""
