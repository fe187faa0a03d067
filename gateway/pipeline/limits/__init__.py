"""Limits that history recommends: what to allow, and the rules that say so."""
