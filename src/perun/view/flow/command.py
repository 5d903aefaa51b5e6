"""The command `flow` of `perun show`, which takes the function as an argument (manual 6.1.3)."""

from __future__ import annotations

from perun.view._common.commands import with_function
from perun.view.flow.view import FlowView

flow = with_function(FlowView, required=("of", "by"))
