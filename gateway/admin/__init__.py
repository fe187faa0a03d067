"""The admin HTTP server, for operators and scrapers: liveness, readiness, metrics.

- `http`: one connection of HTTP/1.1, by h11; the console uses it too
- `server`: a small server of fixed paths
- `slots`: bounds the number of long responses
- `routes`: liveness, readiness, metrics
"""
