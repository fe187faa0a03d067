"""What a person wrote, as frozen and checked values.

- `units`: durations, sizes, addresses as people write them
- `model`: the shape of the file, its defaults and their reasons
- `checks`: what one field cannot know of another
- `source`: YAML with line numbers
- `mistakes`: what is wrong, where, and what would be right
- `load`: all of it together; the only module here that opens files
"""
