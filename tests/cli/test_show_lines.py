"""`perun show lines`: the sources of the version of the profile, whatever the working directory has."""

from pathlib import Path

from answer_forms import hold_form
from perun.profile.format.json import dumps_pending
from profiles import profile_of

PLACES = {
    "src/a.c": "int main()",
    "a.c": "int main()",  # measured in `src`
    "same.c": None,  # there are two
    "/usr/src/a.c": None,
    "gone.c": None,
}


def _store(project, name, origin=""):
    places = [*PLACES, str(project.path / ".perun/tmp/copy/src/a.c")]
    traces = [[{"function": "f", "source": one, "line": 1}] for one in places]
    resources = [{"subtype": "cpu", "uid": one[0]["source"], "amount": 1.0, "trace": one} for one in traces]
    profile = profile_of(resources, "sample")
    profile["origin"] = origin or project.head
    path: Path = project.path / ".perun" / "jobs" / name
    path.write_bytes(dumps_pending(profile))


def _texts(answer):
    hold_form(answer)
    return {one["source"]: one["lines"][0]["text"] for one in answer["functions"]}


def test_sources_are_those_of_the_version(perun, project):
    for folder in ("src", "one", "two"):
        (project.path / folder).mkdir()
        (project.path / folder / ("a.c" if folder == "src" else "same.c")).write_text("int main()\n")
    project.git("add", ".")
    project.git("commit", "-qm", "sources")
    _store(project, "of.perf")
    (project.path / "src" / "a.c").write_text("changed\n")
    copied = str(project.path / ".perun/tmp/copy/src/a.c")
    assert _texts(perun("show", "of.perf", "lines", "--json").json) == {**PLACES, copied: "int main()"}
    # A profile of another repository, whose version is not known here.
    _store(project, "other.perf", origin="1" * 40)
    assert set(_texts(perun("show", "other.perf", "lines", "--json").json).values()) == {None}


def test_what_is_refused(perun, project, write_profile):
    write_profile("time.perf")
    perun("show", "time.perf", "lines", code=6, err="no call stacks")
    _store(project, "of.perf")
    perun("show", "of.perf", "lines", "--top", "0", code=2, err="--top must be at least 1")
    perun("show", "of.perf", "lines", "--function", "nope", code=2, err="no function has 'nope'")
