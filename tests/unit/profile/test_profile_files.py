"""Loading and storing profiles in files (manual 2.2)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from perun.core.errors import ProfileError, ProfileNotFound
from perun.profile.factory import Profile, load_profile, store_profile, store_profile_at


def made() -> Profile:
    profile = Profile(
        header={"type": "time", "units": {"time": "s"}, "cmd": "ls", "args": "", "workload": ""},
        collector_info={"name": "time", "params": {}},
        postprocessors=[],
        origin="a" * 40,
    )
    profile.update_resources({"uid": "f", "type": "time", "amount": n / 8} for n in range(100))
    return profile


@pytest.mark.parametrize("store", [store_profile, store_profile_at])
def test_what_is_stored_is_loaded(tmp_path: Path, store: object) -> None:
    path = tmp_path / "new" / "a.perf"
    store_profile(made(), path)
    assert load_profile(path) == load_profile(str(path)) == made()
    assert json.loads(path.read_text())["origin"] == "a" * 40
    changed = made()
    changed.update_resources([{"uid": "g", "amount": 1}])
    assert callable(store)
    store(changed, str(path))
    assert load_profile(path) == changed
    assert [file.name for file in path.parent.iterdir()] == ["a.perf"]


def test_what_cannot_be_loaded_or_stored(tmp_path: Path) -> None:
    with pytest.raises(ProfileNotFound, match=r"there is no profile .*none.perf"):
        load_profile(tmp_path / "none.perf")
    with pytest.raises(ProfileError, match=r"cannot read .*: it is not a regular file"):
        load_profile(tmp_path)
    (tmp_path / "wrong.perf").write_text("[]")
    with pytest.raises(ProfileError, match=r"wrong.perf: expected a mapping"):
        load_profile(tmp_path / "wrong.perf")
    with pytest.raises(ProfileError, match="cannot write"):
        store_profile(made(), tmp_path / "wrong.perf" / "below.perf")
    with pytest.raises(ProfileError, match="cannot be written as JSON"):
        store_profile(Profile(chunks={1, 2}), tmp_path / "set.perf")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["wrong.perf"]
