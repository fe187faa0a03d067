"""Fuzzing: hostile bytes for the scanners, the conversations and the session, and for a gateway.

`targets` are functions of bytes that fail where a property does not hold. Four drive them: the
replay of the corpus, hypothesis, atheris (guided by coverage), and a corpus that grows. `live` has
hostile peers on both sides of a running gateway. `make fuzz` runs all of it, and `tests.oracle`.
"""
