"""Reloads rules while the gateway serves: at SIGHUP, and when their files have changed.

- `files`: detects changed files
- `reader`: the process that reads and checks files of rules
- `reading`: starts the reader process, and collects its output
- `reloader`: puts the rules in force, in slices

Reading and checking 2000 rules keeps an interpreter busy for a second. In a thread of the gateway,
this would stop the data path for tens of milliseconds again and again, so another process does it.
"""
