"""All protocols that take part in the battery."""

from __future__ import annotations

from tests.second import samples as memo

from . import kafka, pulsar, tubemq
from .battery import Spec

SPECS: tuple[Spec, ...] = (*pulsar.SPECS, *kafka.SPECS, *tubemq.SPECS, *memo.SPECS)
