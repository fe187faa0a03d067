"""The console: an API and a page for the people who run the gateway."""
