"""What tests of several folders share: brokers, gateways in front of them, and clients."""

pytest_plugins = ["tests.real.fixtures"]
