"""The command `bars` of `perun show`, which takes the function as an argument (manual 6.1.1)."""

from __future__ import annotations

from perun.view._common.commands import with_function
from perun.view.bars.view import BarsView

bars = with_function(BarsView, required=("of",))
