"""How a campaign searches."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """How to search.

    :ivar seconds: of searching, those of earlier parts of the campaign included. :ivar executions: at most,
        or None. :ivar hang: seconds after which a run is a hang. :ivar limit: bytes of a mutation.
    :ivar gathering: executions between two tests (`--exec-limit`), and :ivar interesting: inputs that are
        enough for one. :ivar rate: the first threshold. :ivar strategy: of mutations per rule.
    :ivar tests_between: measure between phases of gathering, and let that guide the search; else at the end.
    :ivar coverage: False for `--skip-coverage-testing`. :ivar ignore_failure: of the program on seeds.
    """

    seconds: float
    limit: int
    hang: float = 10.0
    executions: int | None = None
    gathering: int = 100
    interesting: int = 20
    rate: float = 1.5
    strategy: str = "mixed"
    tests_between: bool = True
    coverage: bool = True
    ignore_failure: bool = False
