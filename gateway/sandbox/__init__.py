"""Pulsar brokers in memory: for trying out, and for tests that need no Java.

Small on purpose, and no broker for real use: nothing is kept on disk, and what does not fit the
bound is forgotten. docs/sandbox.md says what it can do.

From the inside out: `log` (what a topic holds), `cursor` (how far a subscription is), `dispatch`
(who gets the next entry), `subscription`, `topic`, `cluster` (which broker has which topic),
`session` (one connection: frames in, frames out). None of these does I/O. Around them `connection`
and `server` (trio), `control` (HTTP) and `command`.
"""
