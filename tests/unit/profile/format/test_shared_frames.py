"""Constants of groups whose frames are encoded once are the JSON that the library of Python writes."""

from __future__ import annotations

import json

from perun.profile.factory import Profile
from perun.profile.format.json import dumps_object


def test_stacks_are_written_as_json() -> None:
    frame = {"source": 'a"trace":null', "function": "f\x7fä"}
    constants = {
        "a#0": {"subtype": "cpu", "trace": [frame, {"function": "g", "line": 3}, frame], "type": "sample"},
        "b#0": {"trace": None, "uid": "nothing"}, "c#0": {"trace": [], "uid": {"trace": None}},
        "d#0": {"uid": "plain"},
    }  # fmt: skip
    for some in (constants, {key: one for key, one in constants.items() if key in "a#0 d#0"}):
        profile = Profile({"header": {}, "resource_type_map": some, "resources": {key: {} for key in some}})
        written = json.dumps(some, separators=(",", ":")).encode()
        assert b'"resource_type_map":' + written in dumps_object(profile)
