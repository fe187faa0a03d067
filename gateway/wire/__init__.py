"""Protocol cores without I/O: no sockets, no clock, no logger, no metrics library."""
