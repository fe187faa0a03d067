"""TLS: streams of the data plane under it, their handshakes, and the certificates of both sides.

- `stream`: a `plane.stream.RecordStream` by OpenSSL
- `files`: reads certificates and keys, and says what is wrong with them
- `sides`: what a listener and a cluster need to make streams
- `handshake`: awaits the handshake of a stream
"""
