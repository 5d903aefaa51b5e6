"""Holds that an answer in JSON is of the form that its schema names."""

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import msgspec

_FILE = Path(__file__).parents[2] / "docs" / "forms.py"
_SPEC = importlib.util.spec_from_file_location("forms", _FILE)
assert _SPEC and _SPEC.loader
forms: Any = importlib.util.module_from_spec(_SPEC)
sys.modules["forms"] = forms
_SPEC.loader.exec_module(forms)


def hold_form(answer: dict[str, Any]) -> None:
    """The answer has the keys of its form, all of them and no others, with values of their types."""
    kinds = [form for form in forms.ANSWERS if answer["schema"] in forms.named(form)]
    kinds = [form for form in kinds if answer.keys() == {*form.__struct_fields__}] or kinds
    for form in kinds[:1]:
        given = msgspec.to_builtins(msgspec.convert(answer, form))
        assert json.loads(json.dumps(given)) == answer  # tuples are lists there
