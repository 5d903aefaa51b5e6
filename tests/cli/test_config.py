"""`perun config` (manual 3.2.2-3.2.5 and chapter 11)."""

import pytest


@pytest.fixture
def local(project):
    return project.path / ".perun" / "local.yml"


@pytest.fixture
def shared(isolated_environment):
    return isolated_environment / "perun" / "shared.yml"


@pytest.fixture
def editor(tmp_path):
    """An editor that adds a line to the file."""

    def make(line):
        path = tmp_path / "editor"
        path.write_text(f"#!/bin/sh\necho '{line}' >> \"$1\"\n")
        path.chmod(0o755)
        return {"EDITOR": str(path)}

    return make


def test_get(perun, project):
    assert perun("config", "get", "vcs.type").out == "vcs.type: git\n"
    assert perun("config", "get", "general.paging").out == "general.paging: only-log\n"
    assert perun("config", "get", "vcs").out == 'vcs: {"type": "git", "url": "..", "main_branch": ""}\n'


def test_get_json_names_the_file(perun, local, shared):
    assert perun("config", "get", "vcs.type", "--json").json == {
        "schema": "perun.config/1",
        "key": "vcs.type",
        "value": "git",
        "source": str(local),
    }
    assert perun("config", "get", "general.paging", "--json").json["source"] is None
    perun("config", "--shared", "set", "general.paging", "never")
    assert perun("config", "get", "general.paging", "--json").json["source"] == str(shared)


def test_set_keeps_the_rest_of_the_file(perun, local):
    before = local.read_text()
    done = perun("config", "set", "format.shortlog", "| %stats% | %desc% |")
    assert done.out == "format.shortlog: | %stats% | %desc% |\n"
    after = local.read_text()
    assert set(before.splitlines()) - set(after.splitlines()) <= {"# format:"}
    assert perun("config", "get", "format.shortlog").out == done.out


def test_the_nearest_wins(perun, project):
    perun("init", "inner")
    inner = project.path / "inner"
    perun("config", "--shared", "set", "general.paging", "never")
    assert perun("config", "get", "general.paging", cwd=inner).out == "general.paging: never\n"
    perun("config", "set", "general.paging", "always")
    assert perun("config", "get", "general.paging", cwd=inner).out == "general.paging: always\n"
    perun("config", "set", "general.paging", "only-status", cwd=inner)
    assert perun("config", "get", "general.paging", cwd=inner).out == "general.paging: only-status\n"
    assert perun("config", "get", "general.paging").out == "general.paging: always\n"


def test_scopes(perun, project, shared):
    perun("config", "--local", "set", "general.editor", "ed")
    perun("config", "--shared", "set", "general.editor", "nano")
    assert perun("config", "get", "general.editor").out == "general.editor: ed\n"
    assert perun("config", "--shared", "get", "general.editor").out == "general.editor: nano\n"
    assert perun("config", "-h", "get", "general.editor").out == "general.editor: nano\n"
    assert "editor: nano" in shared.read_text()


def test_what_a_file_does_not_set(perun, project):
    failed = perun("config", "--local", "get", "general.editor", check=False)
    assert failed.code == 5
    assert "general.editor is not set in the local configuration" in failed.err
    assert "perun config --local set general.editor" in failed.err


@pytest.mark.parametrize(("key", "hint"), [
    ("vcs.typ", "vcs.type"),
    ("fromat.status", "format.status"),
    ("general.pagin", "general.paging"),
    ("nope.nope", "sections and keys are"),
    ("", "sections and keys are"),
])  # fmt: skip
def test_an_unknown_key_names_the_nearest(perun, local, key, hint):
    before = local.read_bytes()
    for arguments in (("get", key), ("set", key, "x")):
        failed = perun("config", *arguments, code=5, err=f"unknown configuration key '{key}'")
        assert hint in failed.err.splitlines()[1]
    assert local.read_bytes() == before


WRONG = [
    ("general.paging", "nevr", "must be one of always, only-log, only-status, never"),
    ("profiles.register_after_run", "perhaps", "true or false"),
    ("cmds", "[a, b", "not YAML"),
    ("vcs", "x", "vcs is a section"),
    ("plugins.trusted", "[/]", "not allowed in a local configuration"),
    ("format.sort_profiles_by", "colour", "realpath, type, time"),
    ("format.status", "%type% %colour%", "there is no tag %colour%\nhint: tags are: %type%, "),
    ("format.shortlog", "%sha%", "format.shortlog: there is no tag %sha%\nhint: tags are: %checksum%"),
    ("format.output_profile_template", "%colour%", "format.output_profile_template: "),
    ("cmds", "./app 'x", 'cmds: the command "./app \'x" cannot be split: No closing quotation'),
    ("cmds", "[./a, './a | ./b']", "cmds: the command './a | ./b': only a shell understands '|', "),
    ("args", "[-v && -q]", "args: the arguments '-v && -q': only a shell understands '&&'"),
    ("workloads", "[< a b]", "workloads: workload '< a b' must name one file"),
    ("execute.pre_run", "[make; make install]", "the command 'make; make install': only a shell"),
    ("collectors", "[{name: tima}]", "collectors: there is no collector 'tima'"),
    ("collectors", "[{name: time, params: {repeat: 0}}]", "repeat"),
    ("postprocessors", "[{name: normaliser}]", "postprocessors: there is no postprocessor 'normaliser'"),
    ("degradation.strategies", "[{method: nosuch}]", "strategies: there is no check 'nosuch'"),
    ("degradation.strategies", "[{method: aat, instead_of: nosuch}]", "there is no check 'nosuch'"),
    ("vcs.type", "hg", "vcs.type: there is no "),
]


def test_a_wrong_value_changes_nothing(perun, local):
    for key, value, message in WRONG:
        before = local.read_bytes()
        perun("config", "--local", "set", key, value, code=5, err=message)
        assert local.read_bytes() == before


def test_lists(perun, project):
    assert perun("config", "set", "cmds", "[./a, ./b]").out == 'cmds: ["./a", "./b"]\n'
    assert perun("config", "get", "cmds", "--json").json["value"] == ["./a", "./b"]


def test_outside_of_any_repository(perun, shared):
    assert perun("config", "get", "general.paging").out == "general.paging: only-log\n"
    perun("config", "set", "general.paging", "never")
    assert "paging: never" in shared.read_text()
    for arguments in (("get", "vcs.type"), ("set", "vcs.type", "git"), ("edit",), ("reset", "-y")):
        perun("config", "--local", *arguments, code=3, err="perun init")


def test_edit_opens_the_local_file_and_checks_it(perun, local, editor):
    perun("config", "edit", env=editor("cmds: [./edited]"))
    assert perun("config", "get", "cmds").out == 'cmds: ["./edited"]\n'
    failed = perun("config", "--edit", env=editor("cmdds: [x]"), code=5)
    lines = local.read_text().splitlines()
    assert f"{local}:{len(lines)}" in failed.err
    assert "did you mean cmds" in failed.err


def test_edit_uses_the_configured_editor(perun, project, tmp_path, editor, shared):
    perun("config", "--shared", "set", "general.editor", editor("args: [x]")["EDITOR"])
    perun("config", "edit", env={"EDITOR": "false"})
    assert perun("config", "get", "args").out == 'args: ["x"]\n'


@pytest.mark.parametrize(
    ("editor", "message"),
    [("/no/such/editor", "cannot be started"), ("false", "ended with status 1"), ("'x", "cannot be split")],
)
def test_an_editor_that_fails(perun, project, editor, message):
    perun("config", "edit", env={"VISUAL": editor}, code=5, err=message)


def test_reset(perun, local, write_profile):
    write_profile()
    perun("config", "set", "cmds", "./app")
    assert perun("config", "reset", "developer", "--yes").out == f"reset {local}\n"
    assert perun("config", "get", "cmds").out == "cmds: []\n"
    assert perun("config", "get", "degradation.log_collect").out == "degradation.log_collect: true\n"
    assert "1 pending profile" in perun("status").out


def test_reset_mends_a_broken_file(perun, local):
    local.write_text("{{{")
    perun("status", code=5)
    perun("config", "reset", "-y")
    perun("status")


def test_reset_of_the_shared_file(perun, project, shared):
    perun("config", "--shared", "set", "general.paging", "never")
    perun("config", "--shared", "reset", "-y")
    assert perun("config", "get", "general.paging").out == "general.paging: only-log\n"
    perun("config", "--shared", "reset", "user", "-y", code=2)


def test_reset_does_not_ask_where_nobody_answers(perun, local):
    perun("config", "set", "cmds", "./app")
    before = local.read_bytes()
    perun("config", "reset", input="y\n", code=2, err="--yes")
    perun("config", "reset", "nope", "-y", code=2)
    assert local.read_bytes() == before


def test_without_a_command_the_help(perun, tmp_path):
    assert "Commands:" in perun("config").out


def test_a_broken_file_is_told_with_line_and_key(perun, local):
    local.write_text("vcs:\n  type: git\n  url: ..\nformat:\n  statsu: x\n")
    perun("status", code=5, err=(f"{local}:5: unknown key 'format.statsu'", "did you mean format.status"))


def test_old_spellings_are_taken_with_a_warning(perun, local):
    text = local.read_text()
    assert "\n  strategies:\n" in text
    local.write_text(text.replace("\n  strategies:\n", "\n  strategy:\n"))
    perun("status", err=("warning:", "degradation.strategies"))


def test_at_the_same_time_no_setting_is_lost(command, environment, local):
    import subprocess

    keys = ["cmds", "args", "general.editor", "degradation.apply"]
    values = ["[a]", "[b]", "ed", "first"]
    running = [
        subprocess.Popen([*command, "config", "set", key, value], env=environment, stdout=subprocess.DEVNULL)
        for key, value in zip(keys, values, strict=True)
    ]
    assert [one.wait() for one in running] == [0] * len(keys)
    text = local.read_text()
    for expected in ("- a", "- b", "editor: ed", "apply: first"):
        assert expected in text, text
