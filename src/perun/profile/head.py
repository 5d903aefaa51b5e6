"""What was measured and how: what lists, indexes and file names say of a profile without its resources.

Nothing heavy is imported here, as listing profiles must start at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple


class Configuration(NamedTuple):
    """What was measured and how; profiles of equal configurations may be compared (manual 8.1).

    In names of units a dash is an underscore, as both spellings mean the same plugin.
    """

    collector: str
    cmd: str
    args: str
    workload: str
    postprocessors: tuple[str, ...]

    @classmethod
    def of(
        cls, collector: str, cmd: str, args: str, workload: str, postprocessors: Iterable[str]
    ) -> Configuration:
        """The configuration with names of units in either spelling."""
        return cls(_plain(collector), cmd, args, workload, tuple(map(_plain, postprocessors)))


class Head(NamedTuple):
    """The head of a profile; an empty text if the profile does not say.

    The postprocessors are in the order of their use, spelled as in the file.
    """

    type: str = ""
    cmd: str = ""
    args: str = ""
    workload: str = ""
    collector: str = ""
    postprocessors: tuple[str, ...] = ()

    @classmethod
    def of(cls, profile: Mapping[str, Any]) -> Head:
        """The head of a profile in memory, or of its regions `header`, `collector_info`, `postprocessors`."""
        header = profile.get("header", {})
        return cls(
            type=header.get("type", ""),
            cmd=header.get("cmd", ""),
            args=header.get("args", ""),
            workload=header.get("workload", ""),
            collector=profile.get("collector_info", {}).get("name", ""),
            postprocessors=tuple(unit.get("name", "") for unit in profile.get("postprocessors", ())),
        )

    @property
    def configuration(self) -> Configuration:
        """What must be equal if two profiles are compared: everything but the type."""
        return Configuration.of(self.collector, self.cmd, self.args, self.workload, self.postprocessors)


def _plain(name: str) -> str:
    return name.replace("-", "_")
