"""The answers of `perun check`: one module for each format, all with the same interface."""

from __future__ import annotations

from importlib import import_module
from typing import Final

from perun.cli.answers.check.wording import CheckAnswer, Page

FORMATS: Final = {
    "text": "CheckText",
    "manual": "Manual",
    "json": "Json",
    "markdown": "Markdown",
    "junit": "JUnit",
    "sarif": "Sarif",
}
"""The class that answers in each format; it stands in the module of that name."""


def answer_in(name: str, page: Page) -> CheckAnswer:
    """The answer in one of :data:`FORMATS`, which begins on `page`."""
    module = import_module(f"perun.cli.answers.check.{name}")
    answer: CheckAnswer = getattr(module, FORMATS[name])(page)
    return answer
