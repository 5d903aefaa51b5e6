"""The rules of `perun fuzz`: each does what the manual says of it, on all inputs."""

import json
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perun.core.errors import PluginError, UsageError
from perun.fuzz import rules
from perun.fuzz.methods import binary, textfile
from shared import examples

BYTES = st.one_of(
    st.binary(max_size=60),
    st.text(" \t\na=<>\"'/12{}[]:,\r", max_size=60).map(str.encode),
    st.sampled_from([b'{"a": [1, {"b": null}], "c": "d"}', b"<a b=\"c\" d='e'>\n<f/></a>", b"3 1 2\nb a\n"]),
)
SEEDS = st.integers(0, 2**32)
EVERY = [*rules.TEXT, *rules.BINARY, *rules.XML, *rules.JSON, *rules.SPLICING]


def lines_of(text: bytes) -> list[bytes]:
    return text.splitlines(keepends=True) or [b""]


def test_all_rules_of_the_manual_are_there() -> None:
    labels = [rule.label for rule in EVERY]
    assert labels[:25] == (
        [f"T.{n}" for n in range(1, 16)] + [f"B.{n}" for n in range(1, 7)] + [f"D.{n}" for n in range(1, 5)]
    )
    assert len(set(labels)) == len(labels)
    for rule in EVERY:
        assert rule.description.endswith(".") and not rule.description.startswith("Rule")


@pytest.mark.parametrize("rule", EVERY, ids=lambda rule: rule.label)
@settings(max_examples=20, deadline=None)
@given(data=BYTES, corpus=st.lists(BYTES, max_size=3), seed=SEEDS, limit=st.integers(0, 80))
def test_a_rule_never_fails_and_repeats_itself(rule, data: bytes, corpus, seed: int, limit: int) -> None:
    made = rules.mutate(rule, data, Random(seed), corpus, limit)
    assert made == rules.mutate(rule, data, Random(seed), corpus, limit)
    assert made is None or (isinstance(made, bytes) and len(made) <= limit and made != data)


@settings(max_examples=examples(60), deadline=None)
@given(data=BYTES, seed=SEEDS)
def test_text_rules_obey_their_descriptions(data: bytes, seed: int) -> None:
    lines = lines_of(data)
    before = list(lines)

    def apply(function: object) -> list[bytes] | None:
        made = function(lines, Random(seed))  # type: ignore[operator]
        assert lines == before, "the given lines are changed"
        return made  # type: ignore[no-any-return]

    def changed_line(made: list[bytes]) -> tuple[bytes, bytes]:
        assert len(made) == len(lines)
        differing = [(old, new) for old, new in zip(lines, made, strict=True) if old != new]
        assert len(differing) == 1
        return differing[0]

    text = b"".join(lines)
    if made := apply(textfile.double_line):
        old, new = changed_line(made)
        assert new.rstrip(b"\r\n") == old.rstrip(b"\r\n") * 2
    if made := apply(textfile.duplicate_line):
        assert len(made) == len(lines) + 1
        assert Counter(line.rstrip(b"\r\n") for line in made) - Counter(
            line.rstrip(b"\r\n") for line in lines
        )
    if made := apply(textfile.divide_line):
        assert len(made) == len(lines) + 1 and len(b"".join(made)) - len(text) in (1, 2)
    if made := apply(textfile.change_character):
        old, new = changed_line(made)
        assert len(old) == len(new) and sum(a != b for a, b in zip(old, new, strict=True)) == 1
    if made := apply(textfile.repeat_word):
        old, new = changed_line(made)
        assert len(new.split()) > len(old.split()) and set(new.split()) == set(old.split())
    for function, backwards in ((textfile.sort_line, False), (textfile.sort_line_in_reverse, True)):
        if made := apply(function):
            old, new = changed_line(made)
            assert sorted(old) == sorted(new)
            words = new.split()
            numbers = all(word.isdigit() for word in words)
            assert words == sorted(words, key=float if numbers else None, reverse=backwards)  # type: ignore[arg-type]
    for function in (textfile.append_whitespaces, textfile.prepend_whitespace, textfile.insert_whitespace,
                     textfile.repeat_whitespace):  # fmt: skip
        if made := apply(function):
            old, new = changed_line(made)
            assert 0 < len(new) - len(old) <= textfile.MOST_WHITESPACES
            assert b"".join(new.split()) == b"".join(old.split())
            if function is textfile.append_whitespaces:
                assert new.rstrip(b"\r\n").startswith(old.rstrip(b"\r\n"))
            if function is textfile.prepend_whitespace:
                assert new.endswith(old)
    if made := apply(textfile.bloat_words):
        old, new = changed_line(made)
        assert len(new) < len(old) and b"".join(new.split()) == b"".join(old.split())
    if made := apply(textfile.delete_line):
        assert not Counter(made) - Counter(lines) and len(made) == len(lines) - 1
    if made := apply(textfile.delete_word):
        old, new = changed_line(made)
        assert not Counter(new) - Counter(old) and len(new.strip()) < len(old.strip())
    if made := apply(textfile.delete_character):
        old, new = changed_line(made)
        assert len(new) == len(old) - 1 and len(b"".join(new.split())) == len(b"".join(old.split())) - 1


@settings(max_examples=examples(60), deadline=None)
@given(data=BYTES, seed=SEEDS)
def test_binary_rules_obey_their_descriptions(data: bytes, seed: int) -> None:
    made = binary.remove_zero_byte(data, Random(seed))
    assert (made is None) == (b"\0" not in data)
    assert made is None or Counter(data) - Counter(made) == Counter([0])
    made = binary.insert_zero_byte(data, Random(seed))
    assert made is not None and Counter(made) - Counter(data) == Counter([0])
    made = binary.insert_byte(data, Random(seed))
    assert made is not None and len(made) == len(data) + 1
    made = binary.remove_byte(data, Random(seed))
    assert (made is None) == (not data)
    assert made is None or len(made) == len(data) - 1
    made = binary.swap_byte(data, Random(seed))
    assert made is None or (
        sorted(made) == sorted(data) and sum(a != b for a, b in zip(data, made, strict=True)) == 2
    )
    made = binary.flip_bit(data, Random(seed))
    assert (made is None) == (not data)
    if made:
        assert sum((a ^ b).bit_count() for a, b in zip(data, made, strict=True)) == 1


@pytest.mark.parametrize("function, expected", [
    (textfile.remove_attribute, {b'<book id="bk106">', b'<book pages="457">'}),
    (textfile.remove_attribute_name, {b'<book id="bk106" "457">', b'<book "bk106" pages="457">'}),
    (textfile.remove_attribute_value, {b'<book id="bk106" pages="">', b'<book id="" pages="457">'}),
    (textfile.remove_tag, {b""}),
])  # fmt: skip
def test_the_xml_rules_make_what_the_manual_shows(function: object, expected: set[bytes]) -> None:
    made = {
        b"".join(function([b'<book id="bk106" pages="457">'], Random(seed)) or ())  # type: ignore[operator]
        for seed in range(30)
    }
    assert made == expected


def test_xml_rules_find_nothing_in_text() -> None:
    for rule in rules.XML:
        assert rule.apply(b"1 < 2 and 3 > 2\nx = 'y'\n", Random(0), ()) is None


@settings(max_examples=examples(40), deadline=None)
@given(
    document=st.recursive(
        st.none() | st.integers() | st.text(max_size=3),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    ),
    seed=SEEDS,
)
def test_json_rules_keep_json_json(document: object, seed: int) -> None:
    data = json.dumps(document).encode()
    for rule in rules.JSON:
        made = rule.apply(data, Random(seed), ())
        if made is None or rule.name in ("remove_bracket", "nest_value", "grow_number"):
            continue
        if rule.name == "remove_value":
            assert len(json.dumps(json.loads(made))) < len(json.dumps(document))
        else:
            assert len(json.dumps(json.loads(made))) > len(json.dumps(document))


def kinds(seed: bytes, name: str) -> str:
    return "".join(sorted({rule.label[0] for rule in rules.for_seed(seed, Path(name))}))


@pytest.mark.parametrize("seed, name, expected", [
    (b"hello world\n", "a.txt", "ST"),
    (b"", "empty", "ST"),
    ("p\u0159\u00edli\u0161 \u017elu\u0165ou\u010dk\u00fd k\u016f\u0148".encode("latin2"), "a", "ST"),
    (b'<?xml version="1.0"?><a/>', "seed", "DST"),
    (b"  <svg></svg>", "seed", "DST"),
    (b"no tags yet", "page.xhtml", "DST"),
    (b'{"a": [1]}', "seed", "JST"),
    (b"broken [", "a.json", "JST"),
    (b"[section]\nkey=1\n", "a.ini", "ST"),
    (b"\x89PNG\r\n\x1a\n\0\0", "a.png", "BS"),
    (b"\x7fELF\2\1\1\0", "a", "BS"),
    (b"BM looks like a bitmap, is text", "a", "ST"),
    (bytes(range(256)), "a.xml", "BS"),
])  # fmt: skip
def test_rules_are_chosen_by_the_content(seed: bytes, name: str, expected: str) -> None:
    assert kinds(seed, name) == expected


def test_text_that_is_cut_within_a_character_is_text() -> None:
    assert kinds("\u00e9".encode() * 40_000 + b"", "a") == "ST"
    assert kinds(b"a" + "\u00e9".encode() * 40_000, "a") == "ST"


def file(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "rules"
    path.write_text(text, encoding="utf-8")
    return path


def test_regex_rules_replace(tmp_path: Path) -> None:
    path = file(tmp_path, "Back: Front\n'([0-9]{2}),([0-9]): x': y\n(\\w+)=(\\w+): \\2=\\1\n")
    found = [rule for rule in rules.for_seed(b"Back to a=b", Path("s"), path) if rule.kind == "regex"]
    assert [rule.label for rule in found] == ["R.1", "R.2", "R.3"]
    assert found[0].apply(b"Back to a=b", Random(1), ()) == b"Front to a=b"
    assert found[1].apply(b"Back to a=b", Random(1), ()) is None
    assert found[2].apply(b"\xff Back to a=b", Random(1), ()) == b"\xff Back to b=a"
    places = {found[0].apply(b"Back Back", Random(seed), ()) for seed in range(40)}
    assert places == {b"Front Back", b"Back Front", b"Front Front"}


@pytest.mark.parametrize("text, line, problem", [
    ("a: b\n(c: d\n", 2, "regular expression '(c' is wrong"),
    ("a: b\nc: \\1\n", 2, "replacement '\\\\1' of 'c' is wrong"),
    ("(?P<n>a): \\g<m>\n", 1, "replacement"),
    ("a: b\nc: [d\n", 3, "no YAML"),
    ("just text\n", 1, "this is no rule"),
    ("a: {b: c}\n", 1, "this is no rule"),
])  # fmt: skip
def test_a_wrong_regex_rule_is_named(tmp_path: Path, text: str, line: int, problem: str) -> None:
    path = file(tmp_path, text)
    with pytest.raises(UsageError) as caught:
        rules.for_seed(b"seed", Path("s"), path)
    assert caught.value.message.startswith(f"{path}:{line}:")
    assert problem in caught.value.message


def test_missing_and_empty_files_of_rules_are_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot read the rules .*missing"):
        rules.for_seed(b"seed", Path("s"), tmp_path / "missing")
    with pytest.raises(UsageError, match="has no rule"):
        rules.for_seed(b"seed", Path("s"), file(tmp_path, "# nothing\n"))
    with pytest.raises(UsageError, match=r"cannot read the dictionary .*missing"):
        rules.for_seed(b"seed", Path("s"), dictionary=tmp_path / "missing")
    with pytest.raises(UsageError, match="has no word"):
        rules.for_seed(b"seed", Path("s"), dictionary=file(tmp_path, "# nothing\n"))


def test_dictionaries(tmp_path: Path) -> None:
    path = file(tmp_path, 'GET\n# comment\nkw1="a\\x00\\"b"\n"two words"\nplain words\n')
    insert = next(rule for rule in rules.for_seed(b"", Path("s"), dictionary=path) if rule.label == "W.1")
    words = {b"GET", b'a\0"b', b"two words", b"plain words"}
    made = {insert.apply(b"", Random(seed), ()) for seed in range(60)}
    assert words <= made
    assert all(any(one == word * (len(one) // len(word)) for word in words) for one in made if one)


@pytest.mark.parametrize("line", ['"open', '"bad \\y escape"', 'name="open', '""'])
def test_a_wrong_word_is_named_with_its_line(tmp_path: Path, line: str) -> None:
    path = file(tmp_path, f"good\n{line}\n")
    with pytest.raises(UsageError, match=f"{path}:2: the word"):
        rules.for_seed(b"", Path("s"), dictionary=path)


def test_splicing_joins_two_inputs() -> None:
    splice = next(rule for rule in rules.SPLICING if rule.name == "splice")
    assert splice.apply(b"aaaa", Random(0), [b"aaaa", b""]) is None
    made = {splice.apply(b"aaaa", Random(seed), [b"bbbb"]) for seed in range(60)}
    assert b"aabb" in made and all(one is not None and set(one) <= set(b"ab") for one in made)
    assert all(one is not None and one == b"a" * one.count(b"a") + b"b" * one.count(b"b") for one in made)


# -- Rules of fuzzing that installed packages bring by entry points ----------------------------------


MAIL = """
from perun.plugin.api import FuzzRule

def repeat(data, random, corpus):
    return data * random.randint(2, 4) if data else None

class MailRules:
    def accepts(self, seed, path):
        return path.suffix == ".eml"

    def rules(self):
        return [FuzzRule("M.1", "Repeat the mail.", repeat)]
"""

Install = Callable[[str], None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Install a package with this module; its entry point names `MailRules`."""

    def into(code: str) -> None:
        (tmp_path / "mail_rules.py").write_text(code)
        metadata = tmp_path / "mail_rules-1.0.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: mail-rules\nVersion: 1.0\n")
        (metadata / "entry_points.txt").write_text("[perun.fuzz_rules]\nmail = mail_rules:MailRules\n")
        monkeypatch.syspath_prepend(str(tmp_path))
        monkeypatch.delitem(sys.modules, "mail_rules", raising=False)

    return into


def mail_rules() -> list[rules.MutationRule]:
    return [rule for rule in rules.for_seed(b"From me\n", Path("a.eml")) if rule.label.startswith("M")]


def test_rules_of_a_package_are_used_for_its_files(install: Install) -> None:
    install(MAIL)
    (rule,) = mail_rules()
    assert (rule.label, rule.name, rule.description) == ("M.1", "mail", "Repeat the mail.")
    assert rule.apply(b"ab", Random(3), ()) == rule.apply(b"ab", Random(3), ())
    assert rules.mutate(rule, b"ab", Random(0), (), 3) == b"aba" and rule.apply(b"", Random(0), ()) is None
    labels = {rule.label for rule in rules.for_seed(b"text\n", Path("a.txt"))}
    assert "M.1" not in labels and "T.1" in labels


@pytest.mark.parametrize("old, new, problem", [
    ("return [Fuzz", "raise KeyError(3); return [Fuzz", "rules 'mail' failed: KeyError"),
    ('path.suffix == ".eml"', "missing", "rules 'mail' failed: NameError"),
    ("import FuzzRule", "import Nothing", "rules 'mail' failed: ImportError"),
    ('[FuzzRule("M.1", "Repeat the mail.", repeat)]', '["M.1"]', "is no perun.plugin.api.FuzzRule"),
    ('"M.1"', '"T.1"', "the label 'T.1'"),
])  # fmt: skip
def test_a_package_that_breaks_the_contract_is_named(install, old: str, new: str, problem: str) -> None:
    assert old in MAIL
    install(MAIL.replace(old, new))
    with pytest.raises(PluginError) as caught:
        mail_rules()
    assert problem in caught.value.message


@pytest.mark.parametrize(
    "result, problem",
    [("1 / 0", "'mail': M.1 failed: ZeroDivisionError"), ("'text'", "M.1 returned str instead of bytes")],
)
def test_a_rule_that_fails_is_named(install: Install, result: str, problem: str) -> None:
    install(MAIL.replace("data * random.randint(2, 4) if data else None", result))
    (rule,) = mail_rules()
    with pytest.raises(PluginError) as caught:
        rule.apply(b"ab", Random(0), ())
    assert problem in caught.value.message
