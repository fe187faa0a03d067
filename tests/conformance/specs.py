"""All protocols that take part in the battery."""

from __future__ import annotations

from tests.second import samples as memo

from . import kafka, pulsar
from .battery import Spec

SPECS: tuple[Spec, ...] = (*pulsar.SPECS, *kafka.SPECS, *memo.SPECS)
