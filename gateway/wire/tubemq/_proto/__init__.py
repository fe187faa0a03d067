"""Generated from the descriptions in proto/ by proto/regenerate.py; only this file is by hand.

It imports none of the modules: each costs time at the start of the process, so whoever needs one
imports it.
"""
