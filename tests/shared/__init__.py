"""What the sandbox and a real Pulsar share, tested on both by the same tests: real clients speak to
either through a gateway. The sandbox's part of the runs needs no Java.
"""
