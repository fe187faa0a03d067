"""What tests of several folders share: brokers, gateways in front of them, and clients."""

from hypothesis import settings

pytest_plugins = ["tests.real.fixtures", "tests.real.configurations", "tests.support.grouped"]

# The same examples in each run. To search for others, take `derandomize` out for a while.
settings.register_profile("tests", derandomize=True, deadline=None)
settings.load_profile("tests")
