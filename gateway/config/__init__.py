"""What a person wrote, as frozen and checked values.

- `units`: durations, sizes, addresses as people write them
- `model`: the shape of the file, its defaults and their reasons
- `checks`: what one field cannot know of another
- `source`: YAML with line numbers
- `environment`: variables in its values
- `mistakes`: what is wrong, where, and what would be right
- `load`: all of it together; the only module here that reads files
- `init`: a file to begin with, from `templates/`, and its secrets
- `trial`: an issuer that signs one token and is forgotten
"""
