"""No setting of git, nor a variable that stands for one, changes what Perun reads out of git's answers."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from perun.running.explain.sources import lines_of
from perun.vcs.git import Git

Make = Callable[..., Any]
OLD = (
    "int first(void)\n{\n    return 1;\n}\n\nint second(void)\n{\n    return 2;\n}\n\n\nint third(void)\n{\n"
)
NEW = OLD.replace("return 1;", "return 10;  ").replace("return 2;", "return 20;\n\n    /* never */")
SETTINGS = {
    "blame.coloring": "highlightRecent", "branch.sort": "-committerdate", "column.ui": "always",
    "color.advice": "always", "color.branch": "always", "color.diff": "always",
    "color.interactive": "always", "color.push": "always", "color.remote": "always",
    "color.showBranch": "always", "color.status": "always", "color.transport": "always",
    "color.ui": "always", "color.diff.new": "bold red", "core.abbrev": "4",
    "core.attributesFile": "{attributes}", "core.bigFileThreshold": "1", "core.pager": "cat -A",
    "core.quotePath": "true", "core.whitespace": "-trailing-space", "diff.algorithm": "patience",
    "diff.colorMoved": "zebra", "diff.context": "0", "diff.c.algorithm": "histogram",
    "diff.dirstat": "files", "diff.external": "false", "diff.ignoreSubmodules": "all",
    "diff.indentHeuristic": "false", "diff.interHunkContext": "100", "diff.mnemonicPrefix": "true",
    "diff.noprefix": "true", "diff.orderFile": "{order}", "diff.relative": "true", "diff.renameLimit": "1",
    "diff.renames": "false", "diff.submodule": "log", "diff.suppressBlankEmpty": "true",
    "diff.wordRegex": ".", "diff.wsErrorHighlight": "all", "format.notes": "*", "format.pretty": "fuller",
    "i18n.commitEncoding": "latin-1", "i18n.logOutputEncoding": "latin-1", "log.abbrevCommit": "true",
    "log.date": "relative", "log.decorate": "full", "log.diffMerges": "on", "log.follow": "true",
    "log.mailmap": "true", "log.showRoot": "true", "log.showSignature": "true", "status.branch": "true",
    "status.relativePaths": "true", "status.renames": "copies", "status.short": "true",
    "status.showStash": "true", "status.showUntrackedFiles": "no", "status.submoduleSummary": "true",
    "submodule.library.ignore": "all", "tag.sort": "-creatordate", "versionsort.suffix": "-rc",
}  # fmt: skip
VARIABLES = {"GIT_DIFF_OPTS": "-u0", "GIT_EXTERNAL_DIFF": "false", "GIT_LITERAL_PATHSPECS": "1"}


@pytest.fixture
def odd(make: Make, repo: Any, tmp_path: Path) -> Any:
    """A repository whose differences have all that settings tell differently: a submodule with a new commit,
    empty lines, renamed and moved lines, names beyond ASCII, a merge, a note, and uncommitted changes."""
    library = make("library")
    library.commit("of the library", {"one.c": OLD})
    allowed = ("-c", "protocol.file.allow=always")
    repo.git(
        *allowed, "submodule", "--quiet", "add", "--name", "library", f"file://{library.root}", "a-library"
    )
    lines = {f"{name}.c": OLD + f"{name}\n" * 12 for name in ("b", "c", "müll")}
    repo.commit("before", {"first.c": OLD, **lines, ".gitattributes": "b.c diff=c\n"})
    repo.git("tag", "v1.0-rc1")
    newer = library.commit("newer", {"one.c": NEW})
    repo.git("-C", "a-library", "fetch", "--quiet")
    repo.git("-C", "a-library", "checkout", "--quiet", newer)
    for name in ("b", "c"):
        repo.git("mv", f"{name}.c", f"moved-{name}.c")
        repo.write({f"moved-{name}.c": NEW + f"{name}\n" * 12})
    repo.commit("after", {"first.c": NEW, "müll.c": NEW + "müll\n" * 12})
    repo.git("tag", "v1.0")
    repo.git("notes", "add", "-m", "a note")
    repo.git("checkout", "--quiet", "-b", "side", "HEAD~1")
    repo.commit("aside", {"aside.c": OLD, ".mailmap": "Other <other@example.org> <ada@example.org>\n"})
    repo.git("checkout", "--quiet", "main")
    repo.git("merge", "--quiet", "--no-edit", "side")
    repo.write({"first.c": OLD, "new.c": NEW, "sub/new.c": OLD})
    repo.git("add", "first.c")
    repo.git("mv", "moved-c.c", "again.c")
    (tmp_path / "order").write_text("s*\nm*\n")
    (tmp_path / "attributes").write_text("*.c -diff\n")
    return repo


def answers(repo: Any, below: str = "") -> dict[str, Any]:
    """What Perun reads out of git's answers, and the lines that `perun explain` takes as changed."""
    vcs = Git(repo.root / below, repo.environ)
    changed = vcs.difference("v1.0-rc1", "v1.0")
    assert changed is not None
    return {
        "files": [(one.old, one.new) for one in changed],
        "lines": [list(lines_of(one)) for one in changed],
        "patches": [one.patch for one in changed],
        "log": list(vcs.walk_minor_versions("HEAD")),
        "subjects": list(vcs.walk_subjects("HEAD", ordered=True)),
        "version": vcs.get_minor_version_info("HEAD"),
        "branches": list(vcs.walk_major_versions()),
        "tags": vcs.tags(),
        "dirty": vcs.is_dirty(),
        "status": vcs.changed_files(),
        "listed": vcs.files("HEAD"),
        "base": vcs.merge_base("side", "v1.0"),
    }


def test_settings_change_no_answer(odd: Any, tmp_path: Path) -> None:
    """All of them at once."""
    expected, below = answers(odd), answers(odd, "sub")
    # What is compared has something to compare: a submodule first, empty lines, files that were moved.
    assert [new for _, new in expected["files"]] == [
        "a-library", "first.c", "moved-b.c", "moved-c.c", "müll.c"
    ]  # fmt: skip
    assert expected["files"][2] == ("b.c", "moved-b.c")
    assert all(any(line.mark == " " and not line.text for line in one) for one in expected["lines"][1:])
    assert expected["dirty"] and "sub/new.c" in expected["status"]
    for name, value in SETTINGS.items():
        odd.git("config", name, value.format(order=tmp_path / "order", attributes=tmp_path / "attributes"))
    assert answers(odd) == expected and answers(odd, "sub") == below


@pytest.mark.slow
def test_no_setting_changes_an_answer(odd: Any, tmp_path: Path) -> None:
    """One after the other."""
    expected, below = answers(odd), answers(odd, "sub")
    wrong = []
    for name, value in SETTINGS.items():
        odd.git("config", name, value.format(order=tmp_path / "order", attributes=tmp_path / "attributes"))
        for place, answer in (("", expected), ("sub", below)):
            found = answers(odd, place)
            wrong += [(name, place, key) for key in answer if found[key] != answer[key]]
        odd.git("config", "--unset", name)
    assert wrong == []


def test_variables_change_no_answer(odd: Any) -> None:
    expected = answers(odd)
    for name, value in VARIABLES.items():
        odd.environ[name] = value
        assert answers(odd) == expected, name
        del odd.environ[name]


@pytest.mark.parametrize("setting", ["apply.whitespace=fix", "apply.whitespace=error", "diff.noprefix=true"])
def test_what_is_staged_comes_back_as_it_was(repo: Any, setting: str) -> None:
    """Where new commits have come to the branch, git itself applies what was staged."""
    staged = "two  \n\tspaces \t\n"
    repo.write({"a.txt": staged})
    repo.git("add", "a.txt")
    repo.git("config", *setting.split("="))
    saved = repo.vcs.prepare_save()
    repo.vcs.finish_save(saved)
    repo.commit("meanwhile", {"other.txt": "other\n"})
    repo.vcs.resume(saved)
    assert repo.git("show", ":a.txt") + "\n" == staged and (repo.root / "a.txt").read_text() == staged
