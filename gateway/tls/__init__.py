"""TLS: encrypted streams for the data plane, their handshakes, and the certificates of both sides.

- `stream`: a `plane.stream.RecordStream` by OpenSSL
- `files`: reads certificates and keys, and says what is wrong with them
- `sides`: makes streams for a listener and for a cluster
- `renewal`: reloads files that have changed
- `handshake`: awaits the handshake of a stream
- `greeting`: reads a client's ClientHello
"""
