"""All protocols that take part in the battery."""

from __future__ import annotations

from . import pulsar
from .battery import Spec

SPECS: tuple[Spec, ...] = pulsar.SPECS
