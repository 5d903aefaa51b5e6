"""Ranges of versions, `A..B`, as git writes them."""

from __future__ import annotations

from perun.errors import UsageError


def ends_of(text: str) -> tuple[str, str] | None:
    """The two revisions of `A..B`, each empty where it is left out; None if there is no `..`.

    :raises UsageError: for `A...B`: what two branches do not share has no beginning and no end.
    """
    first, dots, second = text.partition("..")
    if not dots:
        return None
    if second.startswith("."):
        raise UsageError(f"{text}: three dots name no two versions", f"write {first}..{second[1:]}")
    return first, second
