"""`gateway rules`: rules as files, checked, compared and explained before they hold.

- `files`: from files of rules to a checked set
- `options`: the command line
- `command`: what each command does; the exit status is answered
- `words`: values of a rule as people write them
- `differing`: what differs between two sets
- `explaining`: which limits hold for somebody, and why
"""
