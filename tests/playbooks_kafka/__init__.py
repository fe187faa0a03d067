"""Kafka's sessions and openings as playbooks: frames in, effects or steps out.

`frames` writes what peers say by the generic codec, which what passes does not use. `script` plays
it: `Play` for an open pair, `Talk` for a conversation.
"""
