"""Changing a file changes the one key, and nothing else in it."""

import os
import stat
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from perun.core.config.convert import convert
from perun.core.config.edit import add_default_shared, append, set_value, unset, write_text
from perun.core.config.layers import load, read_file
from perun.core.config.reader import parse, resolve_all, values
from perun.core.config.schema import KEYS, KeyKind, Scope
from perun.core.config.templates import TEMPLATES, default_shared, render
from perun.core.errors import ConfigError

OLD = """vcs:
  type: git
  url: /project

## The commands
cmds:   # in this order
# the first
- dist/a   # fast
- "b"

format:
  sort_profiles_by: [time, stem, copy]  # three
  output_profile_template: '%collector%-of-%cmd%'

## Checks
degradation:
## before
  collect_before_check: true
#   apply: first
  my_check: {low: 1, 'high': 2}
  strategies:
  - method: average_amount_threshold

## To run your custom steps before any collection:
execute:
  pre_run:
  - make

general:
  # editor: vim
"""


@pytest.fixture
def local(tmp_path: Path) -> Path:
    file = tmp_path / "local.yml"
    file.write_text(OLD)
    return file


def changed_lines(file: Path, old: str = OLD) -> tuple[list[str], list[str]]:
    """The lines that are gone and those that are new."""
    before, after = old.splitlines(), file.read_text().splitlines()
    return [line for line in before if line not in after], [line for line in after if line not in before]


@pytest.mark.parametrize(
    ("key", "text", "value", "gone", "new"),
    [
        ("vcs.url", "..", "..", ["  url: /project"], ["  url: .."]),
        (
            "format.sort_profiles_by",
            "type",
            "type",
            ["  sort_profiles_by: [time, stem, copy]  # three"],
            ["  sort_profiles_by: type  # three"],
        ),
        ("format.status", "%source% | x", "%source% | x", [], ["  status: '%source% | x'"]),
        ("degradation.apply", "first", "first", [], ["  apply: first"]),
        ("degradation.collect_before_check", "no", False, ["  collect_before_check: true"],
         ["  collect_before_check: false"]),
        ("cmds", "[c]", ["c"], ["- dist/a   # fast", '- "b"'], ["  - c"]),
        ("cmds", "[]", [], ["cmds:   # in this order", "- dist/a   # fast", '- "b"'],
         ["cmds: []   # in this order"]),
        ("args", "-q -O2", ["-q -O2"], [], ["args:", "  - '-q -O2'"]),
        ("general.editor", "nano", "nano", [], ["  editor: nano"]),
        ("degradation.my_check.low", "5", 5, ["  my_check: {low: 1, 'high': 2}"],
         ["  my_check: {low: 5, 'high': 2}"]),
        ("degradation.my_check.deep.x", "a", "a", ["  my_check: {low: 1, 'high': 2}"],
         ["  my_check: {low: 1, 'high': 2, deep: {x: a}}"]),
        ("profiles.register_after_run", "yes", True, [], ["profiles:", "  register_after_run: true"]),
        ("collectors", "time", [{"name": "time", "params": {}}], [], ["collectors:", "  - name: time"]),
        ("execute.pre_run", '[make, "make install"]', ["make", "make install"], ["  - make"],
         ["    - make", "    - make install"]),
    ],
)  # fmt: skip
def test_only_the_lines_of_the_key_change(local: Path, key: str, text: str, value: object, gone, new) -> None:
    assert set_value(local, key, text) == value and changed_lines(local) == (gone, new)
    assert load([local.parent], local.parent).get(key) == value


def test_new_keys_stand_in_their_section(local: Path) -> None:
    set_value(local, "degradation.apply", "first")
    set_value(local, "general.editor", "nano")
    text = local.read_text()
    assert "  - method: average_amount_threshold\n  apply: first\n\n## To run" in text
    assert "general:\n  editor: nano\n  # editor: vim\n" in text


@pytest.mark.parametrize(("key", "text", "value"), [
    ("general.editor", "true", "true"),
    ("general.editor", "1.0", "1.0"),
    ("general.editor", "", ""),
    ("general.editor", "[a, b]", "[a, b]"),
    ("general.editor", "a: b # c", "a: b # c"),
    ("general.editor", '"quoted"', '"quoted"'),
    ("general.editor", "two\nlines\t\x01\u2028\U0001f600", "two\nlines\t\x01\u2028\U0001f600"),
    ("format.sort_profiles_by", "[time, type]", ["time", "type"]),
    ("cmds", "a: b", ["a: b"]),
    ("cmds", "%x | y", ["%x | y"]),
    ("cmds", "- a\n- b c", ["a", "b c"]),
    ("cmds", "1.0", ["1.0"]),
    ("cmds", "[1.0, yes, ~]", ["1.0", "yes", "~"]),
    ("cmds", "", []),
    ("collectors", "~", []),
    ("degradation.strategies", "# none", []),
    ("degradation.location_filter", "[[a]", "[[a]"),
    ("workloads", '<< "Hello world!"', ['<< "Hello world!"']),
    ("collectors", "{name: time, params: {warmup: 3}}", [{"name": "time", "params": {"warmup": 3}}]),
    ("degradation.strategies", "[{method: aat}]", [{"method": "aat"}]),
    ("degradation.strategy", "{method: aat}", [{"method": "aat"}]),
    ("degradation.cutoff", "2", 2.0),
    ("degradation.location_filter", "lib(a|b)", "lib(a|b)"),
    ("degradation.new_check", "{a: 1, b: [x]}", {"a": 1, "b": ["x"]}),
    ("degradation.new_check.c", "%x", "%x"),
    ("degradation.new_check.c", "true", True),
    ("degradation.new_check.c", "null", None),
])  # fmt: skip
def test_text_is_read_as_the_key_wants(local: Path, key: str, text: str, value: object) -> None:
    assert set_value(local, key, text) == value
    layer = read_file(local)
    if value is not None:
        assert layer.get(key) == value


@pytest.mark.parametrize(("key", "text", "message"), [
    ("general.editr", "x", "general.editr"),
    ("general", "x", "section"),
    ("nosuch.key", "1", "nosuch.key"),
    ("general.paging", "x", "one of always"),
    ("format.sort_profiles_by", "", "realpath"),
    ("format.sort_profiles_by", "[]", "realpath"),
    ("degradation.location_filter", "(" * 10_000, "regular expression"),
    ("cmds", "[a", "not YAML"),
    ("cmds", "[{a: b}]", "item 1"),
    ("collectors", "[{nam: time}]", "unknown key 'nam'"),
    ("collectors", "{", "not YAML"),
    ("degradation.strategies", "aat", "a list of mappings"),
    ("degradation.method", "5", "degradation.method"),
    ("degradation.cutoff", "x", "a number"),
    ("profiles.overwrite", "false", "no effect"),
    ("plugins.trusted", "[/]", "not allowed in a local"),
    ("general.editor", "\udcff", "not UTF-8"),
])  # fmt: skip
def test_wrong_values_change_nothing(local: Path, key: str, text: str, message: str) -> None:
    before = local.stat()
    with pytest.raises(ConfigError) as caught:
        set_value(local, key, text)
    assert message in str(caught.value) and "given value:0" not in str(caught.value)
    assert local.read_text() == OLD and local.stat().st_mtime_ns == before.st_mtime_ns
    assert os.listdir(local.parent) == ["local.yml"]


def test_local_keys_do_not_go_into_the_shared_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="local configuration"):
        set_value(tmp_path / "shared.yml", "cmds", "a")
    assert not (tmp_path / "shared.yml").exists()


def test_missing_files_are_made(tmp_path: Path) -> None:
    local, shared = tmp_path / "new" / "local.yml", tmp_path / "conf" / "shared.yml"
    set_value(local, "vcs.url", "..")
    assert local.read_text() == "vcs:\n  url: ..\n"
    set_value(shared, "degradation.apply", "first")
    assert shared.read_text() == default_shared().replace("apply: all", "apply: first")
    set_value(shared, "plugins.trusted", f"[{tmp_path}]")
    assert load([], shared.parent).get("plugins.trusted") == [str(tmp_path)]


def test_a_wrong_value_elsewhere_does_not_hinder_its_repair(local: Path) -> None:
    local.write_text("general:\n  paging: bogus\n  editr: x\nnosuch: 1\n")
    set_value(local, "general.paging", "never")
    assert unset(local, "general.editr") and unset(local, "nosuch")
    assert local.read_text() == "general:\n  paging: never\n"
    assert read_file(local).values == {"general": {"paging": "never"}}


def test_files_that_are_not_yaml_are_left_alone(local: Path) -> None:
    for text in ("a: [", "- a\n", "text\n", "general: vim\n"):
        local.write_text(text)
        with pytest.raises(ConfigError, match=r"local\.yml:"):
            set_value(local, "general.editor", "nano")
        assert local.read_text() == text


def test_the_old_spelling_makes_way(local: Path) -> None:
    local.write_text("degradation:\n  apply: all\n  # why\n  strategy:\n  - method: aat\n")
    set_value(local, "degradation.strategies", "[{method: bmoe}]")
    assert local.read_text() == "degradation:\n  apply: all\n  strategies:\n    - method: bmoe\n  # why\n"


@pytest.mark.parametrize(
    ("before", "key", "text", "after"),
    [
        ("", "vcs.type", "git", "vcs:\n  type: git\n"),
        ("# note", "vcs.type", "git", "# note\n\nvcs:\n  type: git\n"),
        ("---\n# note\n", "vcs.type", "git", "---\n# note\n\nvcs:\n  type: git\n"),
        ("{}", "vcs.type", "git", "{vcs: {type: git}}"),
        ("{vcs: {url: x}, }\n", "vcs.type", "git", "{vcs: {url: x, type: git}, }\n"),
        ("{vcs: {type}}\n", "vcs.type", "git", "{vcs: {type: git}}\n"),
        ("vcs: {}\n", "vcs.type", "git", "vcs:\n  type: git\n"),
        ("vcs: ~ # none\n", "vcs.type", "git", "vcs: # none\n  type: git\n"),
        ("vcs:\r\n  # note\r\n  url: x\r\n", "vcs.type", "git",
         "vcs:\r\n  # note\r\n  url: x\r\n  type: git\r\n"),
        ("vcs:\r\n  type: |\r\n    a\r\ncmds: b\r\n", "cmds", "[a]",
         "vcs:\r\n  type: |\r\n    a\r\ncmds:\r\n  - a\r\n"),
        ("\ufeffvcs:\n  type: a\n", "vcs.type", "git", "\ufeffvcs:\n  type: git\n"),
        ("vcs:\n    url: x", "vcs.type", "git", "vcs:\n    url: x\n    type: git"),
        ("  vcs:\n    url: x\n", "cmds", "a", "  vcs:\n    url: x\n\n  cmds:\n    - a\n"),
        ("'vcs':\n  \"type\":   'a' # b\n", "vcs.type", "git", "'vcs':\n  \"type\": git # b\n"),
        ("vcs:\n  type: >\n    a\n    b\n\n# end\n", "vcs.type", "git", "vcs:\n  type: git\n\n# end\n"),
        ("vcs:\n  type: a\n    b\n  url: x\n", "vcs.type", "git", "vcs:\n  type: git\n  url: x\n"),
        ("cmds: [a,\n  b] # c\nargs: [x]\n", "cmds", "[d]", "cmds: # c\n  - d\nargs: [x]\n"),
        ("cmds:\n  # one\n  - a # two\n  # three\n", "cmds", "[]", "cmds: []\n  # one # two\n  # three\n"),
    ],
)  # fmt: skip
def test_all_shapes_of_yaml(local: Path, before: str, key: str, text: str, after: str) -> None:
    local.write_text(before, newline="", encoding="utf-8")
    set_value(local, key, text)
    assert local.read_bytes().decode() == after


def test_what_would_change_more_than_the_key_is_refused(local: Path) -> None:
    text = "degradation:\n  one: &a {x: 1}\n  two: *a\n"
    local.write_text(text)
    for key in ("degradation.one.x", "degradation.two.x", "degradation.one"):
        with pytest.raises(ConfigError, match="without changing other values") as caught:
            set_value(local, key, "{x: 3}")
        assert "config edit" in caught.value.hint
    assert local.read_text() == text


@pytest.mark.parametrize(("before", "key", "after"), [
    ("vcs:\n  type: a # c\n  url: b\n", "vcs.type", "vcs:\n  url: b\n"),
    ("vcs:\n  # c\n  type: a\n", "vcs.type", "vcs:\n  # c\n"),
    ("cmds:\n- a\n- b\n# c\nargs: []\n", "cmds", "# c\nargs: []\n"),
    ("vcs: {type: a, url: b}\n", "vcs.type", "vcs: {url: b}\n"),
    ("vcs: {type: a, url: b}\n", "vcs.url", "vcs: {type: a}\n"),
    ("vcs: {type: a}\n", "vcs.type", "vcs: {}\n"),
    ("vcs:\r\n  type: a\r\n  url: b\r\n", "vcs.type", "vcs:\r\n  url: b\r\n"),
    ("cmds: a", "cmds", ""),
    ("cmds: |\n  a\n\n\nargs: b\n", "cmds", "\n\nargs: b\n"),
])  # fmt: skip
def test_unset(local: Path, before: str, key: str, after: str) -> None:
    local.write_text(before, newline="")
    assert unset(local, key) is True and local.read_bytes().decode() == after and unset(local, key) is False
    assert local.read_bytes().decode() == after


def test_permissions_are_kept(local: Path) -> None:
    local.chmod(0o640)
    set_value(local, "general.editor", "nano")
    assert stat.S_IMODE(local.stat().st_mode) == 0o640


def test_symbolic_links_are_written_through(local: Path, tmp_path: Path) -> None:
    folder = tmp_path / "other"
    folder.mkdir()
    link, dangling = folder / "local.yml", folder / "shared.yml"
    link.symlink_to("../local.yml")
    set_value(link, "general.editor", "nano")
    assert link.is_symlink() and read_file(local).get("general.editor") == "nano"
    dangling.symlink_to(tmp_path / "deep" / "s.yml")
    assert add_default_shared(dangling)
    assert dangling.is_symlink() and (tmp_path / "deep" / "s.yml").read_text() == default_shared()


def test_a_folder_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="cannot be written"):
        write_text(tmp_path / "file" / "local.yml", "")


def test_add_default_shared(tmp_path: Path) -> None:
    file = tmp_path / "perun" / "shared.yml"
    assert add_default_shared(file) is True
    file.write_text("general:\n  editor: mine\n")
    assert add_default_shared(file) is False
    assert file.read_text() == "general:\n  editor: mine\n"
    assert add_default_shared(file, overwrite=True) is True
    assert file.read_text() == default_shared()


DOCUMENTS = [OLD, OLD.replace("\n", "\r\n"), "", "{cmds: [a], vcs: {type: git}}\n", default_shared()]
SETTABLE = [key for key in KEYS.values() if key.kind not in (KeyKind.IGNORED, KeyKind.SETTINGS)]
TEXTS = [key for key in SETTABLE if key.kind is KeyKind.TEXT]


def plain(text: str) -> dict[str, object]:
    node = parse(text, "f")
    return {} if node is None else dict(resolve_all(values(node)))


def without(data: dict[str, object], name: str) -> dict[str, object]:
    section, _, last = name.rpartition(".")
    result = dict(data)
    if section:
        inner = result.pop(section, None)
        rest = {key: value for key, value in (inner or {}).items() if key != last}  # type: ignore[attr-defined]
        return {**result, section: rest} if rest else result
    result.pop(last, None)
    return result


def comments(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.lstrip().startswith("#")]


@given(st.sampled_from(DOCUMENTS), st.sampled_from(TEXTS), st.text())
@example(OLD, KEYS["general.editor"], "---")
@example(OLD, KEYS["vcs.url"], "a\r\nb")
def test_random_texts_survive(tmp_path_factory, document: str, key, text: str) -> None:
    name = "local.yml"
    file = tmp_path_factory.mktemp("x") / name
    file.write_text(document, newline="")
    assert set_value(file, key.name, text) == text
    after = file.read_bytes().decode()
    section, _, last = key.name.partition(".")
    assert plain(after)[section][last] == text  # type: ignore[index]
    assert without(plain(after), key.name) == without(plain(document), key.name)
    assert comments(after) == comments(document)


@given(st.sampled_from(DOCUMENTS), st.sampled_from(SETTABLE), st.text(alphabet="ab[]{}:,-'\"# \n\t%&*!|>~1"))
def test_random_values_are_set_or_refused(tmp_path_factory, document: str, key, text: str) -> None:
    file = tmp_path_factory.mktemp("x") / ("shared.yml" if key.scope is Scope.SHARED else "local.yml")
    file.write_text(document, newline="")
    try:
        value = set_value(file, key.name, text)
    except ConfigError:
        assert file.read_bytes().decode() == document
        return
    after = file.read_bytes().decode()
    assert convert(key, value, "x") == value
    assert without(plain(after), key.name) == without(plain(document), key.name)
    assert set(comments(document)) - set(comments(after)) <= {"# the first"}


@given(st.lists(st.text(), max_size=5))
def test_random_lists_of_commands_survive(tmp_path_factory, commands: list[str]) -> None:
    from perun.core.config import templates

    file = tmp_path_factory.mktemp("x") / "local.yml"
    file.write_text(OLD)
    assert set_value(file, "cmds", templates.inline(commands)) == commands
    assert read_file(file).get("cmds") == commands


@pytest.mark.parametrize("template", TEMPLATES)
def test_generated_files_can_be_set_key_by_key(tmp_path: Path, template: str) -> None:
    file = tmp_path / "local.yml"
    text = render(template, tmp_path, "git", tmp_path)
    file.write_text(text)
    for key in SETTABLE:
        if key.scope is not Scope.SHARED and key.kind in (KeyKind.TEXT, KeyKind.BOOL, KeyKind.TEXTS):
            set_value(file, key.name, "yes")
    assert [line for line in comments(text) if line not in comments(file.read_text())] == []
    assert read_file(file).get("execute.pre_run") == ["yes"]


def test_items_are_appended_beside_the_comments_of_a_list(tmp_path: Path) -> None:
    file = tmp_path / "local.yml"
    file.write_text(OLD)
    append(file, "cmds", ["c", "sh -c 'd | e'"])
    append(file, "format.sort_profiles_by", ["type"])
    more = "- \"b\"\n- c\n- 'sh -c ''d | e'''\n"
    assert file.read_text() == OLD.replace('- "b"\n', more).replace("stem, copy]", "stem, copy, type]")


@pytest.mark.parametrize(("text", "found"), [
    *((text, ["b", "1"]) for text in ("", "cmds: []\n", "cmds:\n", "args: [x]\n")),
    ("cmds: a  # the only one\n", ["a", "b", "1"]),
])  # fmt: skip
def test_items_are_appended_to_whatever_is_there(tmp_path: Path, text: str, found: list[str]) -> None:
    file = tmp_path / "local.yml"
    file.write_text(text)
    append(file, "cmds", ["b", "1"])
    assert read_file(file).get("cmds") == found


def test_wrong_items_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "local.yml"
    file.write_text("collectors: [{name: time}]\n")
    with pytest.raises(ConfigError):
        append(file, "collectors", [{"nam": "memory"}])
    assert file.read_text() == "collectors: [{name: time}]\n"


@example("", ["\x85", "\u2028", "\U0001f600", "1.0", "no"])  # line breaks of YAML, and what has meanings
@given(st.sampled_from(DOCUMENTS), st.lists(st.text(), min_size=1, max_size=3))
def test_random_items_are_appended(tmp_path_factory, document: str, items: list[str]) -> None:
    file = tmp_path_factory.mktemp("x") / "local.yml"
    file.write_text(document, newline="")
    try:
        before = read_file(file).get("cmds")
        append(file, "cmds", items)
    except ConfigError:
        assert file.read_bytes().decode() == document
        return
    after = file.read_bytes().decode()
    old = before if isinstance(before, list) else []
    assert read_file(file).get("cmds") == [*old, *items]
    assert set(comments(document)) - set(comments(after)) <= {"# the first"}
