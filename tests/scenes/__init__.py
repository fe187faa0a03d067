"""Each protocol on a real broker: what users notice."""
