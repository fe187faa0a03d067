"""`gateway rules`: checks, compares and explains files of rules before they are put in force.

- `options`: the command line
- `command`: what each command does
- `files`: reads and checks files of rules
- `text`: rules, differences and explanations as text
"""
