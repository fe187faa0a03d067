"""Generated from the descriptions in proto/ by proto/regenerate.py; only this file is by hand."""
