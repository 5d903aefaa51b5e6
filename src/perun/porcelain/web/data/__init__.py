"""The pieces that pages are made of, as JSON has them: a key for each field, null for None.

Times are seconds since 1970. A *position* is the place of a version among all that are known, the oldest 0.
Numbers have six digits. The form of each piece is `perun.web.NAME/1`: keys may be added to it.
"""

from __future__ import annotations

from perun.porcelain.web.data.common import Named, Number, Numbers, Ref
from perun.porcelain.web.data.pairs import (
    Case,
    Compared,
    Comparison,
    Cost,
    Diff,
    DiffLine,
    Explained,
    Model,
    Reason,
    Reasons,
    Sample,
    Side,
)
from perun.porcelain.web.data.series import (
    Acknowledged,
    Around,
    Change,
    ChangeList,
    Configuration,
    Level,
    Line,
    Points,
    Series,
    SeriesList,
    SeriesPage,
)
from perun.porcelain.web.data.versions import (
    Checked,
    Commit,
    Commits,
    History,
    Message,
    Profile,
    Running,
    Site,
    Values,
)
from perun.porcelain.web.data.whole import (
    Coverage,
    Covered,
    Fuzzed,
    Grid,
    Heat,
    Missing,
    Multiple,
    Overview,
    Row,
    Tag,
    Verdict,
)

AnyPiece = (
    Site
    | History
    | Commits
    | SeriesList
    | ChangeList
    | SeriesPage
    | Points
    | Overview
    | Values
    | Grid
    | Coverage
    | Comparison
    | Explained
    | Message
)

__all__ = [
    "Acknowledged",
    "AnyPiece",
    "Around",
    "Case",
    "Change",
    "ChangeList",
    "Checked",
    "Commit",
    "Commits",
    "Compared",
    "Comparison",
    "Configuration",
    "Cost",
    "Coverage",
    "Covered",
    "Diff",
    "DiffLine",
    "Explained",
    "Fuzzed",
    "Grid",
    "Heat",
    "History",
    "Level",
    "Line",
    "Message",
    "Missing",
    "Model",
    "Multiple",
    "Named",
    "Number",
    "Numbers",
    "Overview",
    "Points",
    "Profile",
    "Reason",
    "Reasons",
    "Ref",
    "Row",
    "Running",
    "Sample",
    "Series",
    "SeriesList",
    "SeriesPage",
    "Side",
    "Site",
    "Tag",
    "Values",
    "Verdict",
]
