"""`status` and `log` are answered without click where they can be; the command tree answers the same."""

from __future__ import annotations

import pytest

from perun.cli.quick import recognised

SPELLINGS = [
    ["status"],
    ["status", "--short"],
    ["status", "-s", "--json"],
    ["log"],
    ["log", "-s"],
    ["log", "--json"],
    ["log", "--changes-only", "--json"],
    ["log", "-s", "-n", "2"],
    ["log", "--max-count", "1", "--graph"],
    ["--no-pager", "-nc", "log", "--short"],
    ["-v", "status"],
]


def test_both_ways_answer_the_same(perun, project):
    for spelling in SPELLINGS:
        assert recognised(spelling) is not None
        # `--dev-mode` changes nothing here but that the command tree is asked.
        through_tree = ["--dev-mode", *spelling]
        assert recognised(through_tree) is None
        assert perun(*spelling).out == perun(*through_tree).out != ""


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["statsu"],
        ["status", "--sort-by", "time"],
        ["status", "--help"],
        ["log", "HEAD~1"],
        ["log", "-x"],
        ["log", "-n"],
        ["log", "-n", "-1"],
        ["status", "-n", "1"],
        ["--metrics", "f", "i", "log"],
        ["add", "--short"],
        ["status", "--changes-only"],
        ["--no-pager"],
    ],
    ids=" ".join,
)
def test_everything_else_goes_to_the_tree(arguments):
    assert recognised(arguments) is None


def test_errors_are_the_same(perun, tmp_path):
    quick = perun("status", cwd=tmp_path, check=False)
    assert recognised(["--", "status"]) is None
    tree = perun("--", "status", cwd=tmp_path, check=False)
    assert (quick.code, quick.err) == (tree.code, tree.err)
    assert quick.code == 3
