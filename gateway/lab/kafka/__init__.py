"""Kafka brokers in memory: for trying out, and for tests that need no Java.

The sandbox is small on purpose and not for production: nothing is kept on disk, nothing is
replicated, and batches beyond the memory bound are evicted. docs/tutorial.md lists its features.

From the inside out: `codec` (bodies as dicts), `batches` (record batches), `log` (batches of a
partition), `cluster` (brokers, topics, and who leads which partition), `groups` (members of
consumer groups and their offsets), `users` (logins), `session` (one connection: a request in, its
response out). None of these does I/O, though `cluster` and `groups` have tasks wait. The handlers
of requests are in `opening`, `metadata`, `producing`, `fetching`, `grouping`, `committing` and
`administering`. `connection`, `server` and `command` surround them.
"""
