"""The console: an API and a page for the gateway's operators."""
