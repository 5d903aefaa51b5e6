"""Rules of fuzzing that installed packages bring by entry points."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from perun.core.errors import PluginError
from perun.fuzz import rules

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


def mail_rules() -> list[rules.Rule]:
    return [rule for rule in rules.for_seed(b"From me\n", Path("a.eml")) if rule.label.startswith("M")]


def test_rules_of_a_package_are_used_for_its_files(install: Install) -> None:
    install(MAIL)
    (rule,) = mail_rules()
    assert (rule.label, rule.name, rule.description) == ("M.1", "mail", "Repeat the mail.")
    assert rule.apply(b"ab", Random(3), ()) == rule.apply(b"ab", Random(3), ())
    assert rules.mutate(rule, b"ab", Random(0), (), 3) == b"aba"
    assert rule.apply(b"", Random(0), ()) is None
    labels = {rule.label for rule in rules.for_seed(b"text\n", Path("a.txt"))}
    assert "M.1" not in labels and "T.1" in labels


@pytest.mark.parametrize(
    "old, new, problem",
    [
        ("return [Fuzz", "raise KeyError(3); return [Fuzz", "rules 'mail' failed: KeyError"),
        ('path.suffix == ".eml"', "missing", "rules 'mail' failed: NameError"),
        ("import FuzzRule", "import Nothing", "rules 'mail' failed: ImportError"),
        ('[FuzzRule("M.1", "Repeat the mail.", repeat)]', '["M.1"]', "is no perun.plugin.api.FuzzRule"),
        ('"M.1"', '"T.1"', "the label 'T.1'"),
    ],
)
def test_a_package_that_breaks_the_contract_is_named(
    install: Install, old: str, new: str, problem: str
) -> None:
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
