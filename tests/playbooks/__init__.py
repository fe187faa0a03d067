"""Playbooks: what a peer says goes in, what the session makes of it comes out.

`script.Play` is an open pair without sockets: `play.client(frame)` and `play.broker(frame)` say a
frame, and the response tells whether it passed unseen or which effects decided it.
`script.Talk` is a conversation (an opening, a chase), step by step, as `front/` would carry it out.
Both ask a `services.FakeServices`.

Not emitted by a Pulsar session so far: `Pause` and `Block`.
"""
