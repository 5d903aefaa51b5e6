"""Differential flame graphs, drawn by the view `flamegraph`: whole pages, as the view writes them."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from perun.errors import PerunError
from perun.plugin.api import ViewContext
from perun.plugin.failing import errors_of
from perun.porcelain.explain.gathered import ProfilePair
from perun.porcelain.repository import Repository

VIEW: Final = "flamegraph"
TITLES: Final[Mapping[str, str]] = {
    "instructions": "Instructions",
    "trace": "Time",
    "complexity": "Time",
    "memory": "Memory",
}
"""The collectors whose profiles have call stacks, by the title of their graph, in the order of the page."""


def graphs(
    repo: Repository, pairs: Mapping[str, ProfilePair], unseen: list[str]
) -> Iterator[tuple[str, str]]:
    """The title and the page of each pair that has call stacks. :param unseen: gets why one has none."""
    for collector, title in TITLES.items():
        if collector in pairs:
            try:
                yield title, _page(repo, pairs[collector], title)
            except PerunError as problem:
                unseen.append(f"flame graph of {collector}: {problem.message}")


def _page(repo: Repository, pair: ProfilePair, title: str) -> str:
    view = repo.registry.get("view", VIEW)
    with tempfile.TemporaryDirectory(prefix="perun-explain-") as folder:
        path = Path(folder) / "graph.html"
        params = replace(
            view.Params(), filename=str(path), diff="the version before", graph_title=title, icicle=True
        )
        context = ViewContext(load=lambda name: pair.base)
        with errors_of(view, f"the view {VIEW!r}", PerunError):
            view.render(pair.head, params, io.StringIO(), context)
        return path.read_text("utf-8")
