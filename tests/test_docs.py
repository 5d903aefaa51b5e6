"""The manual speaks of everything that the program has."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import click
import pytest

from perun.cli.main import COMMANDS, cli
from perun.cli.session import Session
from perun.core.config.schema import KEYS
from perun.core.errors import EXIT_CODES
from perun.plugin.registry import Registry

DOCS = Path(__file__).parents[1] / "docs"


@pytest.fixture(scope="module")
def reference() -> ModuleType:
    spec = importlib.util.spec_from_file_location("reference", DOCS / "reference.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["reference"] = module
    spec.loader.exec_module(module)
    return module


def test_reference_has_every_command_key_and_exit_code(reference: ModuleType) -> None:
    pages = reference.pages()
    for name in reference.cli.list_commands(None):
        assert f"## perun {name}\n" in pages["commands"]
    for key in KEYS:
        assert f"## `{key}`" in pages["configuration"]
    for code in EXIT_CODES:
        assert f"| {code} |" in pages["exit-codes"]


def test_reference_has_no_option_without_a_description(reference: ModuleType) -> None:
    assert "No description." not in reference.pages()["commands"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a <file> of `<kind>`", r"a \<file\> of `<kind>`"),
        ("snake_case and 5 %", r"snake\_case and 5 \%"),
        ("one ` alone", r"one \` alone"),
    ],
)
def test_escape_keeps_code_and_protects_the_rest(reference: ModuleType, text: str, shown: str) -> None:
    assert reference.escape(text) == shown


def test_every_page_is_reachable() -> None:
    index = (DOCS / "index.md").read_text("utf-8")
    for page in DOCS.glob("*.md"):
        assert page.stem == "index" or f"\n{page.stem}\n" in index, f"{page.name} is not in the index"


def test_links_between_pages_lead_to_a_heading() -> None:
    pages = {page.name: page.read_text("utf-8") for page in DOCS.glob("*.md")}
    headings = {
        name: {
            re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")
            for title in re.findall(r"^#+ (.+)$", text, re.M)
        }
        for name, text in pages.items()
    }
    links = [
        (name, target or name, anchor)
        for name, text in pages.items()
        for target, anchor in re.findall(r"\]\((?!generated/|https?:)([\w.-]*)(?:#([\w-]+))?\)", text)
        if target.endswith(".md") or not target
    ]
    assert len(links) > 100
    places = {(name, anchor) for name in pages for anchor in ("", *headings[name])}
    assert [link for link in links if link[1:] not in places] == []


def test_files_that_the_page_of_typical_changes_names_are_there() -> None:
    page = (DOCS / "contributing.md").read_text("utf-8")
    named = [path for path in re.findall(r"`([a-z_]+/[\w./-]+)`", page) if "NAME" not in path]
    assert len(named) > 30
    assert [path for path in named if not (DOCS.parent / path).exists()] == []


def unknown_word(words: list[str]) -> str:
    """The first word that is no command, or no option where it stands; empty if there is none."""
    context = click.Context(cli, info_name="perun", obj=Session({}, Path("/")))
    context.obj.registry = Registry()
    known = {"-h", "--help", "-vv"}
    for place, word in enumerate(words):
        command = context.command
        names = {name for one in command.params for name in (*one.opts, *one.secondary_opts)}
        name = word.partition("=")[0].rstrip(",;)")
        if word in ("|", "||", "&&", ">", ";", "does"):  # what follows is of the shell, or of the sentence
            return ""
        if re.match("-[^0-9]", word):
            if name not in names | known | {"--"}:
                return word
        elif isinstance(command, click.Group) and word.rstrip(",;)") in command.list_commands(context):
            inner = command.get_command(context, word.rstrip(",;)"))
            context = click.Context(inner or command, context, word)
        elif not place:
            return word
    return ""


def test_the_table_of_questions_has_every_command() -> None:
    table = (DOCS / "commands.md").read_text("utf-8").partition("\n## ")[0]
    named = {words.split()[1] for words in re.findall(r"`(perun [^`]+)`", table)}
    assert set(COMMANDS) - named == set()
    assert len(re.findall(r"^\| .+\? \| `perun ", table, re.M)) == table.count("\n| ") - 2


def test_commands_that_pages_and_messages_name_are_there() -> None:
    """With the options that they name, in the place where these stand."""
    pages = [*DOCS.glob("*.md"), DOCS.parent / "README.md", DOCS.parent / "CHANGELOG.md"]
    source = [*(DOCS.parent / "src").rglob("*.py"), *(DOCS.parent / "src").rglob("*.js")]
    named = [
        (path.name, command.partition("  ")[0])
        for files, patterns in (
            (pages, (r"`(perun [^`\n]+)`", r"^(?:\$ |    )(perun .*)$")),
            (source, (r": (perun [a-z][^\"'`\n;({]+)", r"`(perun [a-z][^`\n]+)`")),
        )
        for path in files
        for pattern in patterns
        for command in re.findall(pattern, path.read_text("utf-8"), re.M)
    ]
    assert len(named) > 700
    wrong = []
    for name, command in named:
        words = re.findall(r"'[^']*'|\"[^\"]*\"|[^\s]+", command.replace("${", "{"))[1:]
        if words and words[0] != "COMMAND" and (word := unknown_word(words)):
            wrong.append((name, command, word))
    assert wrong == []


def test_the_table_of_common_options_is_that_of_the_commands(reference: ModuleType) -> None:
    page = (DOCS / "commands.md").read_text("utf-8").partition("\n## ")[2]
    rows = re.findall(r"^\| (`-.+?) \|", page, re.M)
    names = {name for row in rows for name in re.findall(r"-[\w-]+", row)}
    used = reference.pages()["commands"]
    assert names >= {"--minor", "--since", "--cmd", "--args", "--workload", "--series", "--json", "--output"}
    assert {name for name in names if name not in used} == set()


def test_the_glossary_is_short_and_each_term_is_that_of_a_page() -> None:
    lines = (DOCS / "glossary.md").read_text("utf-8").splitlines()
    assert len(lines) <= 60
    rows = [row for row in lines if row.startswith("| ")][1:]
    for row in rows[1:]:
        term, _, meaning = row.strip("| ").partition(" | ")
        pages = " ".join((DOCS / page).read_text("utf-8") for page in re.findall(r"\(([\w-]+\.md)", meaning))
        words = [word.strip("` ").lower() for word in term.split(",")]
        # The page has the word, or that of the general term: `profile` of `configuration of a profile`.
        assert any(word.split(" of ")[0][:-1] in pages.lower() for word in words), row
