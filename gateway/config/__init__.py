"""The configuration as frozen, checked values.

- `model`: the shape of the file, its defaults and their reasons
- `units`: functions that read durations, sizes and addresses
- `store`: reads the URL of the store
- `checks`: rules that span several fields
- `source`: parses YAML, and knows its line numbers
- `environment`: replaces environment variables in values
- `mistakes`: texts that say what is wrong in a file, where, and what would be right
- `parts`, `face`: the base class of settings, which differs between a process that checks settings
  and a process that only serves
- `load`: reads a file, and uses all modules above; no other module here reads files
- `init`: writes an initial file from `templates/`, and its secrets
- `trial`: makes an issuer of tokens that signs one token and is discarded
"""

import os

# Pydantic would load plugins of any installed package: the meaning of a file must not depend on
# them, and looking for them takes 2 % of the time to start.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
