"""The profile itself."""

from __future__ import annotations

import io
import json

from perun.profile.factory import Profile
from perun.profile.formats import loads
from perun.view.raw import PLUGIN, RawParams


def test_what_is_shown_is_the_profile() -> None:
    regions = {
        "origin": "a" * 40,
        "header": {"type": "time", "cmd": "žluťoučký", "args": "", "workload": "", "units": {"time": "s"}},
        "collector_info": {"name": "time", "params": {}},
        "postprocessors": [],
    }
    profile = Profile(regions)
    profile.update_resources([{"uid": "f", "type": "time", "amount": 0.5, "order": 1}])
    out = io.StringIO()
    PLUGIN().render(profile, RawParams(), out)
    shown = out.getvalue()
    assert shown.endswith("}\n")
    assert '\n  "header": {\n    "type": "time"' in shown
    assert json.loads(shown)["origin"] == "a" * 40
    assert loads(shown.encode(), "shown").serialize() == profile.serialize()
