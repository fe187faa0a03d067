"""The same tests for the sandbox and for a real Pulsar: real clients use either through a gateway.
The sandbox runs need no Java."""
