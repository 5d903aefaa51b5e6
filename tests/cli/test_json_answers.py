"""The page on JSON names every key that the answers have, and their schema is made of their forms."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest

from answer_forms import forms, hold_form

SCHEMA = json.loads(forms.FILE.read_text("utf-8"))
PAGE = (Path(__file__).parents[2] / "docs" / "json.md").read_text("utf-8")
DATA = {"profiles", "versions"}
"""Keys whose mappings have keys of the data, such as types of profiles, and programs of `perun doctor`."""


def keys_of(answer: Any) -> Iterator[str]:
    if isinstance(answer, dict):
        for key, value in answer.items():
            yield key
            if key not in DATA or isinstance(value, list):
                yield from keys_of(value)
    elif isinstance(answer, list):
        for item in answer:
            yield from keys_of(item)


@pytest.mark.parametrize(
    ("verb", "schema"),
    [
        (("status", "--json"), "perun.status/2"),
        (("log", "--json"), "perun.log/2"),
        (("check", "head", "--json"), "perun.check/1"),
        (("check", "all", "--json"), "perun.check/1"),
        (("config", "get", "vcs.type", "--json"), "perun.config/1"),
        (("fsck", "--json"), "perun.fsck/1"),
        (("trend", "--json"), "perun.trend/2"),
        (("changes", "--json"), "perun.changes/2"),
        (("ack", "HEAD", "sleep", "--json"), "perun.ack/1"),
        (("run", "job", "-c", "time", "-cp", "time", "repeat=1", "-b", "true", "--json"), "perun.run/1"),
        (("bench", "sleep 0.001", "-r", "2", "--json"), "perun.bench/2"),
        (("doctor", "--json"), "perun.doctor/1"),
        (("hooks", "status", "--json"), "perun.hooks/1"),
        (("trust", "--show", "--json"), "perun.trust/1"),
        (("gc", "--keep-last", "1", "--dry-run", "--json"), "perun.gc/1"),
        (("rm", "0@i", "--json"), "perun.rm/1"),
        (("postprocessby", "--json", "0@i", "normalizer"), "perun.postprocessby/1"),
        (("stats", "list-files", "--json"), "perun.stats/1"),
        (("stats", "list-versions", "--json"), "perun.stats/1"),
        (("temp", "list", "--json"), "perun.temp/1"),
        (("remote", "list", "--json"), "perun.remotes/1"),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_every_key_is_documented(perun, project, made_before, verb, schema):
    def measure():
        perun("collect", "-c", "sleep 0.01", "time", "-r", "2", "-w", "0")
        perun("add", "0@p")
        project.commit("slower")
        perun("collect", "-c", "sleep 0.01", "time", "-r", "1", "-w", "0")
        perun("add", "0@p", "--keep-profile")

    made_before("measured twice", measure)
    answer = perun(*verb).json
    assert answer["schema"] == schema
    assert f"`{schema}`" in "".join(line for line in PAGE.splitlines() if line.startswith("## "))
    if schema != "perun.check/1":  # other tests are about that
        jsonschema.Draft202012Validator(strict(SCHEMA)).validate(answer)
    missing = {key for key in keys_of(answer) if key != "schema" and f"`{key}`" not in PAGE}
    assert not missing


def strict(part: Any) -> Any:
    """The schema, in which an object has no other keys than those that are named."""
    if isinstance(part, list):
        return [strict(item) for item in part]
    if not isinstance(part, dict):
        return part
    made = {key: strict(value) for key, value in part.items()}
    return {**made, "additionalProperties": False} if "properties" in made and "type" in made else made


def test_the_schema_in_the_manual_is_that_of_the_answers():
    assert forms.schema() == SCHEMA, "write it anew with: python docs/forms.py"
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert "(schemas/perun.answers.schema.json)" in PAGE


def test_every_schema_that_the_program_names_has_a_form_and_a_section():
    source = Path(__file__).parents[2] / "src" / "perun"
    found = {
        name
        for folder in ("cli", "running")
        for path in (source / folder).rglob("*.py")
        for name in re.findall(r"\"(perun\.[a-z.]+/\d)\"", path.read_text("utf-8"))
    }
    known = {name for form in forms.ANSWERS for name in forms.named(form)}
    assert found - known == {"perun.check/1"} - known
    headings = " ".join(line for line in PAGE.splitlines() if line.startswith("## "))
    assert {name for name in known if f"`{name}`" not in headings} == set()


def test_an_answer_of_another_form_is_noticed():
    hold_form({"schema": "perun.rm/1", "profiles": [{"name": "a", "minor_version": None}]})
    known = {"name": "a", "minor_version": None}
    for row in ({"name": "a"}, {**known, "minor_version": 1}, {**known, "more": 1}):
        with pytest.raises((AssertionError, msgspec.ValidationError)):
            hold_form({"schema": "perun.rm/1", "profiles": [row]})
