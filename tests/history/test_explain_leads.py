"""`perun explain` tells the change that did it first, whatever the compiler has made of it."""

import shutil

import explained_commits
import pytest

from perun.running.explain.lines import bare

QUICK = ("an early end that is gone, so that another function runs more often", "a flag of the compiler")
COMMITS = {one.name: one for one in explained_commits.COMMITS}
ENOUGH = 18
"""Of the twenty."""
BODY = """    long sum = 0;
    for (int i = 0; i < 40; i++)
        sum += (from->place * i) ^ (to->place + sum);
    return sum;
"""
RENAMED = ("brackets.c", BODY, BODY.replace("sum", "total"))
"""Of the function that is called more often: its lines change, and cost the same a call."""


@pytest.fixture
def lead(tmp_path, perun):
    """A function that makes a commit and explains it: the causes that are told."""
    if shutil.which("valgrind") is None or shutil.which("g++") is None:
        pytest.skip("needs valgrind and g++; as root: apt-get install valgrind g++")

    def explained(commit):
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        explained_commits.make(folder, commit)
        perun("init", cwd=folder)
        perun("config", "set", "execute.pre_run", '["make"]', cwd=folder)
        perun("trust", cwd=folder)
        found = perun("explain", "HEAD", "-c", "./prog", "--collect", "instructions", "--json", cwd=folder)
        (case,) = found.json["configurations"]
        return case["causes"], folder

    return explained


def named(cause, wanted):
    name = cause["name"] or cause["path"]
    return wanted in (name, bare(name)) and bool(cause["diff"])


def test_what_calls_more_often_leads_and_what_is_called_is_its_effect(lead, perun):
    commit = COMMITS[QUICK[0]]
    causes, folder = lead(commit._replace(edits=[*commit.edits, RENAMED]))
    first = causes[0]
    assert (first["kind"], first["name"], first["path"]) == ("function", "find_open", "brackets.c")
    (effect,) = [one for one in first["effects"] if one["function"] == "process"]
    assert effect["calls"][1] == pytest.approx(8 * effect["calls"][0], rel=0.01)
    assert "process() executes 8x" in first["sentence"] and "called 8x as often" in first["sentence"]
    costs = {line["text"].strip(): line["cost"] for line in first["diff"]}
    assert costs["if (from - one > 20)"] > 10_000
    text = perun("explain", "HEAD", "-c", "./prog", "--no-collect", cwd=folder).out
    assert "find_open() executes" in text and "3 lines of it changed in brackets.c:16-26" in text


def test_options_of_the_compiler_lead_where_no_source_changed(lead):
    causes, _ = lead(COMMITS[QUICK[1]])
    assert [(one["kind"], one["path"]) for one in causes] == [("build", "Makefile")]
    assert "-O0" in causes[0]["diff"][-1]["text"]


@pytest.mark.slow
def test_the_change_that_did_it_leads(lead):
    first = {commit.name: (lead(commit)[0] or [{"name": "", "path": ""}])[0] for commit in COMMITS.values()}
    others = {name: one["name"] or one["path"] for name, one in first.items()
              if not named(one, COMMITS[name].lead)}  # fmt: skip
    assert len(first) - len(others) >= ENOUGH, others
