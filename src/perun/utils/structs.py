"""Data types that plugins written after the manual import from here (manual 8.4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from perun.models.record import ModelRecord
from perun.plugin.api import MajorVersion, MinorVersion
from perun.plugin.legacy.units import Executable
from perun.profile.changes import DegradationInfo, PerformanceChange

__all__ = [
    "CollectStatus",
    "DegradationInfo",
    "Executable",
    "Job",
    "MajorVersion",
    "MinorVersion",
    "ModelRecord",
    "PerformanceChange",
    "PostprocessStatus",
    "Unit",
]


class CollectStatus(Enum):
    """Status that a phase of a collector returns; anything but `OK` makes the job fail."""

    OK = 0
    ERROR = 1


class PostprocessStatus(Enum):
    """Status that a phase of a postprocessor returns; anything but `OK` makes the job fail."""

    OK = 0
    ERROR = 1


@dataclass(frozen=True)
class Unit:
    """A collector or postprocessor and its parameters."""

    name: str
    params: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Job:
    """What is measured, the collector that measures it, and what is done to the profile afterwards."""

    collector: Unit
    postprocessors: tuple[Unit, ...]
    executable: Executable
