"""Holds that an answer in JSON is of the form that its schema names."""

from __future__ import annotations

from typing import Any

import msgspec

from perun.cli.answers.forms import ANSWERS, named


def hold_form(answer: dict[str, Any]) -> None:
    """The answer has the keys of its form, all of them and no others, with values of their types."""
    kinds = [form for form in ANSWERS if answer["schema"] in named(form)]
    kinds = [form for form in kinds if answer.keys() == {*form.__struct_fields__}] or kinds
    for form in kinds[:1]:
        assert msgspec.to_builtins(msgspec.convert(answer, form)) == answer
