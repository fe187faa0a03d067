"""The front with fake protocols, on real sockets; where time matters it is a clock that jumps."""
