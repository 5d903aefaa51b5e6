"""Generated files are valid, say what the manual's table says, and name files however odd they are called."""

import os
import re
import shlex
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perun.core.config.layers import MISSING, Layer, read_file
from perun.core.config.schema import KEYS, KeyKind, Scope
from perun.core.config.templates import MAX_FOUND, TEMPLATES, default_shared, relative_url, render
from perun.core.errors import UsageError

METHODS = [
    {"method": "hodges_lehmann_ratio"},
    {"method": "average_amount_threshold", "instead_of": "hodges_lehmann_ratio"},
]
UNSET = dict.fromkeys(
    ["cmds", "args", "workloads", "collectors", "postprocessors",
     "degradation.collect_before_check", "degradation.log_collect", "execute.pre_run",
     "profiles.register_after_run", "format.output_profile_template"],
    MISSING,
) | {"degradation.strategies": METHODS}  # fmt: skip
DEVELOPER = {
    "degradation.collect_before_check": True, "degradation.log_collect": True, "execute.pre_run": ["make"]
}  # fmt: skip
TABLE = {
    "master": UNSET,
    "developer": {**UNSET, **DEVELOPER},
    "user": {
        **UNSET, **DEVELOPER, "cmds": ["./build/prog"], "workloads": ["./workloads/one.txt"],
        "collectors": [{"name": "time", "params": {"warmup": 3, "repeat": 10}}],
        "profiles.register_after_run": True,
        "format.output_profile_template": "%collector%-of-%cmd%-%workload%-%date%"
    },
}  # fmt: skip
"""The table of the manual, 11.3, but for the methods: each template names those of a new repository."""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def add(path: Path, content: bytes = b"#!/bin/sh\n", mode: int = 0o755) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    path.chmod(mode)


def read(project: Path, text: str) -> Layer:
    file = project / ".perun" / "local.yml"
    file.parent.mkdir(exist_ok=True)
    file.write_text(text, encoding="utf-8")
    layer = read_file(file)
    assert layer.warnings == ()
    return layer


def user(project: Path) -> Layer:
    return read(project, render("user", project, "git", project))


@pytest.mark.parametrize("template", TABLE)
def test_the_table_of_the_manual(project: Path, template: str) -> None:
    add(project / "build" / "prog")
    add(project / "workloads" / "one.txt", b"1\n", 0o644)
    (project / "Makefile").touch()
    layer = read(project, render(template, project, "git", project))
    assert {key: layer.get(key) for key in TABLE[template]} == TABLE[template]
    assert layer.get("vcs") == {"type": "git", "url": ".."}


def uncommented(text: str) -> str:
    return re.sub(r"^# ", "", text, flags=re.MULTILINE)


@pytest.mark.parametrize("template", TEMPLATES)
def test_every_hint_can_be_uncommented(project: Path, template: str) -> None:
    text = render(template, project, "git", project)
    layer = read(project, uncommented(text))
    local = [key.name for key in KEYS.values() if key.scope is Scope.LOCAL]
    assert [key for key in local if layer.get(key) is MISSING] == []
    assert "  ## " in text and "\n## " in text


def test_the_shared_file_holds_the_defaults_and_a_hint_for_everything_else(tmp_path: Path) -> None:
    file = tmp_path / "shared.yml"
    for text in (default_shared(), uncommented(default_shared())):
        file.write_text(text)
        layer = read_file(file)
        for key in KEYS.values():
            if key.scope is not Scope.LOCAL and key.kind not in (KeyKind.IGNORED, KeyKind.SETTINGS):
                wanted = key.default if key.example is None else key.example
                found = layer.get(key.name)
                assert found == wanted or (text == default_shared() and found is MISSING and key.example)


def test_lines_are_short() -> None:
    assert max(map(len, default_shared().splitlines())) <= 110


def test_an_unknown_template_lists_the_known_ones(project: Path) -> None:
    with pytest.raises(UsageError, match="expert") as caught:
        render("expert", project, "git", project)
    assert all(name in caught.value.hint for name in ("user", "developer", "master"))


@pytest.mark.parametrize("template", ["user", "developer"])
def test_without_a_known_build_make_is_a_hint(project: Path, template: str) -> None:
    text = render(template, project, "git", project)
    assert read(project, text).get("execute.pre_run") is MISSING
    assert "not recognised" in text and "#     - make" in text


@pytest.mark.parametrize("template", TEMPLATES)
def test_the_build_of_the_project_is_set_or_a_hint(project: Path, template: str) -> None:
    (project / "Cargo.toml").touch()
    text = render(template, project, "git", project)
    assert "This project is built by cargo (Cargo.toml)." in text
    layer = read(project, text if template != "master" else uncommented(text))
    assert layer.get("execute.pre_run") == ["cargo build --release"]
    assert (read(project, text).get("execute.pre_run") is MISSING) == (template == "master")


def test_executables_are_programs_in_build_folders(project: Path) -> None:
    add(project / "build" / "elf", b"\x7fELF\x02")
    add(project / "build" / "deep" / "script", b"#!/usr/bin/env python3\n")
    add(project / "sub" / "_build" / "x")
    add(project / "dist" / "y")
    for name in ("libx.so", "libx.so.1.2", "x.o", "x.a", "x.la", "libz.dylib"):
        add(project / "build" / name, b"\x7fELF\x02")
    add(project / "build" / "readme", b"#!/bin/sh\n", 0o644)
    add(project / "build" / "data", b"\x00\x01")
    add(project / "build" / "empty", b"")
    add(project / "src" / "z")
    add(project / "build" / ".git" / "hook")
    add(project / ".git" / "build" / "hook")
    add(project / "build" / "CMakeFiles" / "3.25" / "a.out")
    add(project / "build" / "venv" / "pyvenv.cfg")
    add(project / "build" / "venv" / "bin" / "pip")
    assert user(project).get("cmds") == ["./build/deep/script", "./build/elf", "./dist/y", "./sub/_build/x"]


def test_workloads_are_all_files_in_workload_folders(project: Path) -> None:
    wanted = ("workload/a", "workloads/b", "examples/deep/c", "sub/payloads/d")
    for name in (*wanted, "data/e", "workloads/.hidden"):
        add(project / name, b"", 0o644)
    assert user(project).get("workloads") == [
        "./examples/deep/c", "./sub/payloads/d", "./workload/a", "./workloads/b"
    ]  # fmt: skip


def test_links_lead_to_files_but_never_in_circles(project: Path) -> None:
    add(project / "bin" / "prog")
    (project / "build").mkdir()
    (project / "build" / "link").symlink_to("../bin/prog")
    (project / "build" / "loop").symlink_to("loop")
    (project / "build" / "up").symlink_to("..")
    (project / "build" / "gone").symlink_to("nowhere")
    os.mkfifo(project / "build" / "pipe")
    assert user(project).get("cmds") == ["./build/link"]


def test_many_files_are_cut_and_counted(project: Path) -> None:
    for n in range(MAX_FOUND + 7):
        add(project / "workloads" / f"{n:03}", b"", 0o644)
    text = render("user", project, "git", project)
    assert "7 more were found" in text
    assert len(read(project, text).get("workloads")) == MAX_FOUND


def test_nothing_found_is_said(project: Path) -> None:
    text = render("user", project, "git", project)
    assert "folders named build, _build, dist" in text.replace("\n## ", " ")
    assert read(project, text).get("cmds") is MISSING


@pytest.mark.parametrize(
    "name",
    ["a b", "it's", 'say "x"', "číslo", "a#b", " # x", "k: v", "- x", "[x]", "{x}", "*x", "%d", "\U0001f600",
     "a\\b", "x'\"`$(y)", "yes", "1.0", "~", "@x", "!x", "&x", "|", ">", "trailing ", "a,b",
     "é\u0301", "\u00a0"],
)  # fmt: skip
def test_odd_file_names_are_named_so_that_a_shell_would_find_them(project: Path, name: str) -> None:
    add(project / "build" / name)
    (found,) = user(project).get("cmds")
    assert shlex.split(found) == [f"./build/{name}"]


def test_names_that_no_configuration_can_hold_are_left_out(project: Path) -> None:
    add(project / "build" / "fine")
    add(project / "build" / "line\nbreak")
    add(Path(os.fsdecode(bytes(project / "build") + b"/\xff")))
    assert user(project).get("cmds") == ["./build/fine"]


NAMES = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="/\0"), min_size=1, max_size=20)


@given(NAMES.filter(lambda name: name not in (".", "..")))
def test_any_file_name_gives_a_valid_file(tmp_path_factory: pytest.TempPathFactory, name: str) -> None:
    project = tmp_path_factory.mktemp("p")
    add(project / "workloads" / name, b"", 0o644)
    found = user(project).get("workloads")
    if found is not MISSING:
        assert shlex.split(found[0]) == [f"./workloads/{name}"]


@pytest.mark.parametrize(("url", "written"), [
    ("/x/project", ".."),
    ("/x/project/", ".."),
    (".", ".."),
    ("/x", "../.."),
    ("/x/project/vendor/lib", "../vendor/lib"),
    ("vendor", "../vendor"),
    ("/x/other", "/x/other"),
    ("/srv/repo", "/srv/repo"),
    ("/x/project2", "/x/project2"),
])  # fmt: skip
def test_the_repository_is_named_relative_to_the_perun_folder(url: str, written: str) -> None:
    assert relative_url(Path("/x/project"), url) == written
    seen_from_perun = os.path.normpath(os.path.join("/x/project/.perun", written))
    assert seen_from_perun == os.path.normpath(os.path.join("/x/project", url))


@pytest.mark.parametrize("vcs_type", ["git", "tagit", "my: vcs", "yes"])
def test_any_type_of_version_control(project: Path, vcs_type: str) -> None:
    assert read(project, render("master", project, vcs_type, "/o # dd/: x")).get("vcs") == {
        "type": vcs_type,
        "url": "/o # dd/: x",
    }
