"""The configuration as frozen, checked values.

- `model`: the shape of the file, its defaults and their reasons
- `units`: readers of durations, sizes and addresses
- `store`: the reader of the store's URL
- `checks`: rules that span several fields
- `source`: YAML with line numbers
- `environment`: replaces environment variables in values
- `mistakes`: what is wrong, where, and what would be right
- `parts`, `face`: the base of settings, in a process that checks them or in one that only serves
- `load`: reads a file and applies all of these; the only module here that reads files
- `init`: writes an initial file from `templates/`, and its secrets
- `trial`: an issuer that signs one token and is discarded
"""

import os

# Pydantic would load plugins of any installed package: the meaning of a file must not depend on
# them, and looking for them takes 2 % of the time to start.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
