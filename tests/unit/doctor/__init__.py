"""Tests of `gateway doctor`; `fakes` has peers that say what a test wants."""
