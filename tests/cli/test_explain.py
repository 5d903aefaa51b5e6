"""`perun explain`: the functions and the lines that made a version cost more."""

import re
import shutil
import subprocess
from pathlib import Path

import project as generated
import pytest

WORDS = ("-c", "./words", "-w", "400")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A short history of the C program, with a Perun repository once the first test has run."""
    folder = tmp_path_factory.mktemp("explained") / "words"
    return folder, generated.make(folder, 24)


@pytest.fixture
def history(made, perun):
    """The history, and a function that explains one of its versions."""
    if shutil.which("valgrind") is None:
        pytest.skip("there is no valgrind, which counts instructions; as root: apt-get install valgrind")
    folder, commits = made
    if not (folder / ".perun").exists():
        perun("init", cwd=folder)
        perun("config", "set", "execute.pre_run", '["make"]', cwd=folder)
    perun("trust", cwd=folder)

    def explain(*arguments, **options):
        return perun("explain", *arguments, cwd=folder, **options)

    return explain, commits, folder


def first(answer):
    """The worst function of the only configuration."""
    (case,) = answer.json["configurations"]
    return case["functions"][0]


def git(folder, *arguments):
    done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout


def cost(function, metric):
    return next(one for one in function["costs"] if one["metric"] == metric)


def marked(function, mark):
    return " ".join(line["text"] for line in function["diff"] if line["mark"] == mark)


def test_the_quadratic_commit(history):
    explain, commits, folder = history
    answer = explain(
        commits.quadratic, *WORDS, "--sizes", "25,50,100,200,400", "--collect", "instructions", "--json"
    )
    assert answer.json["schema"] == "perun.explain/1"
    assert answer.json["base"]["checksum"] == commits.before(commits.quadratic)
    assert answer.json["head"]["checksum"] == commits.quadratic
    function = first(answer)
    assert (function["function"], function["path"]) == ("unique", "words.c")
    counted = cost(function, "instructions")
    assert counted["exact"] and counted["ratio"] > 5
    assert any("strcmp" in part["name"] for part in function["libraries"])
    assert function["growth"]["changed"] and function["growth"]["worse"]
    assert function["growth"]["after"].endswith("n^2")
    assert "memset" in marked(function, "-") and "int new = 1;" in marked(function, "+")
    start, end = function["lines"]
    text = git(folder, "show", f"{commits.quadratic}:words.c").split("\n")
    assert (text[start - 1], text[end - 1]) == ("int unique(struct word *words, int count)", "}")
    assert "its order of growth went from" in function["sentence"]
    assert [one["path"] for one in answer.json["others"]] == ["version.h"]
    (case,) = answer.json["configurations"]
    assert "instructions" in {one["metric"] for one in case["totals"]}
    assert "calls: not measured, as --collect does not name it" in case["unseen"]
    # Nothing of the user's has changed, and no working copy is left.
    assert not git(folder, "status", "--porcelain")
    assert not list((folder / ".perun" / "tmp").glob("worktree*"))


def test_the_commit_of_five_percent_names_the_macro_that_the_function_uses(history):
    explain, commits, _ = history
    answer = explain(commits.five_percent, *WORDS, "--json")
    function = first(answer)
    assert (function["function"], function["changed_lines"]) == ("checksum", 0)
    assert cost(function, "instructions")["ratio"] == pytest.approx(1.05, abs=0.01)
    texts = [(one["path"], one["mark"], one["text"]) for one in function["near"]]
    assert texts == [("words.c", "-", "#define ROUNDS 20"), ("words.c", "+", "#define ROUNDS 21")]
    assert "it uses what changed in words.c:7" in function["sentence"]


def test_the_leak_and_what_is_stored_is_used_again(history, perun, tmp_path):
    explain, commits, folder = history
    page = tmp_path / "why.html"
    answer = explain(commits.leak, *WORDS, "--collect", "instructions,memory", "--json")
    function = first(answer)
    assert function["function"] == "label"
    leaked = cost(function, "leaked")
    assert (leaked["before"], leaked["after"], leaked["ratio"]) == (0, 400 * 16, None)
    (site,) = function["sites"]
    assert site["allocator"] == "malloc" and site["leaked"] == [0, 6400]
    assert "free(words[i].label);" in marked(function, "-")
    assert answer.json["stored"] == 4
    again = explain(commits.leak, *WORDS, "--no-collect", "--json", "-o", page).json
    assert again["stored"] == 0
    assert first(answer)["costs"] == again["configurations"][0]["functions"][0]["costs"]
    document = page.read_text()
    assert document.count("<iframe sandbox") == 2  # instructions, and memory
    assert "free(words[i].label);" in document
    assert not re.search(r"(src|href)=[\"']?(https?:)?//", document)
    text = explain(commits.leak, "label", "--no-collect")
    assert "label() leaks memory that it did not before [exact]: 6.25 KiB" in text.out
    assert re.search(r"^ +73 .*- +free\(words\[i\]\.label\);$", text.out, re.MULTILINE)
    nearest = explain(commits.leak, "labels", "--no-collect", check=False)
    assert nearest.code == 2
    assert "no profile of the two versions has a function 'labels'" in nearest.err
    assert "did you mean 'label'?" in nearest.err
    # Settings of git change no answer.
    settings = tmp_path / "gitconfig"
    settings.write_text(
        "[diff]\n\tsubmodule = log\n\tsuppressBlankEmpty = true\n\tcontext = 0\n\talgorithm = patience\n"
        "\tinterHunkContext = 50\n\tnoprefix = true\n\trenames = false\n[core]\n\tbigFileThreshold = 1\n"
        "\tabbrev = 4\n[color]\n\tui = always\n\tdiff = always\n[log]\n\tdecorate = full\n\tdate = relative\n"
        "[status]\n\tshowUntrackedFiles = no\n\tbranch = true\n\tshort = true\n[format]\n\tpretty = fuller\n"
    )
    asked = (
        ("explain", commits.leak, *WORDS, "--no-collect", "--json"),
        ("explain", commits.leak, *WORDS, "--no-collect"),
        ("log", "--json"),
        ("log", "--graph"),
        ("status", "--json", commits.leak),
    )
    for command in asked:
        plain, shaped = (
            perun(*command, cwd=folder, env={"GIT_CONFIG_GLOBAL": str(config)})
            for config in ("/dev/null", settings)
        )
        assert plain.out == shaped.out, command


def test_what_is_measured_is_said_where_it_is_wrong(history):
    explain, commits, _ = history
    refused = explain(commits.leak, *WORDS, "--collect", "instruction", check=False)
    assert "--collect: 'instruction' is none of instructions, memory, calls" in refused.err
    spent = explain(commits.commits[1], *WORDS, "--budget", "0.000001", check=False)
    assert "instructions: the budget of 1e-06 s was spent before" in spent.err
    assert "--budget: -1 is no time" in explain("HEAD", *WORDS, "--budget", "-1", check=False).err


def test_what_cannot_be_explained(history):
    explain, commits, folder = history

    def refused(*arguments):
        outcome = explain(*arguments, check=False)
        assert outcome.code and not outcome.out
        return outcome.err

    assert "'nonsense'" in refused("nonsense", *WORDS)
    assert "has no parent" in refused(commits.commits[0], *WORDS)
    assert "both ends are" in refused("HEAD..main", *WORDS)
    assert "the job matrix is empty" in refused(commits.broken[0])
    assert "no command has profiles of both" in refused(commits.commits[1], "--no-collect")
    assert f"head ({commits.broken[0][:10]}) cannot be prepared" in refused(commits.broken[0], *WORDS)
    assert "--sizes: 1,2 does not tell" in refused(commits.leak, *WORDS, "--sizes", "1,2")
    assert "is no list of numbers" in refused(commits.leak, *WORDS, "--sizes", "1,x")
    assert "is a folder" in refused(commits.leak, *WORDS, "-o", Path("/tmp"))
    assert not list((folder / ".perun" / "tmp").glob("worktree*"))


def test_measuring_needs_trust(history, perun, made):
    _, commits, folder = history
    perun("trust", "--revoke", cwd=folder, check=False)
    outcome = perun("explain", commits.leak, *WORDS, cwd=folder, check=False)
    assert outcome.code and "trust" in outcome.err
