"""A cluster for all tests of a run, and a namespace for each."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from tests.deploy.rendering import VERSION
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.images import gateway
from tests.real.artifacts import Artifacts

_NUMBERS = itertools.count(1)

RESTRICTED = "pod-security.kubernetes.io/enforce=restricted"


@pytest.fixture(scope="session")
def cluster(artifacts: Artifacts) -> Iterator[Cluster]:
    folder = artifacts.directory("kubernetes")
    with Cluster(folder, {f"broker-gateway:{VERSION}": gateway()}) as made:
        yield made


@pytest.fixture
def namespace(cluster: Cluster) -> Iterator[str]:
    """A namespace in which pods may do nothing that the profile `restricted` forbids."""
    name = f"messaging-{next(_NUMBERS)}"
    cluster.run("kubectl", "create", "namespace", name)
    cluster.run("kubectl", "label", "namespace", name, RESTRICTED)
    yield name
    cluster.run("kubectl", "delete", "namespace", name, "--wait=false")
    cluster.ended(name)
