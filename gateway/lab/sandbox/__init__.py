"""Pulsar brokers in memory: for trying out, and for tests that need no Java.

The sandbox is small on purpose and not for production: nothing is kept on disk, and entries beyond
the memory bound are evicted. docs/tutorial.md lists its features.

From the inside out: `log` (entries of a topic), `cursor` (progress of a subscription), `dispatch`
(which consumer gets the next entry), `subscription`, `topic`, `cluster` (which broker owns which
topic), `session` (one connection: frames in, frames out). None of these does I/O. `connection` and
`server` (trio), `control` (HTTP) and `command` surround them.
"""
