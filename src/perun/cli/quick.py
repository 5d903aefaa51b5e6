"""`status` and `log` in their everyday spellings, answered without click.

Loading click takes longer than either of them, and both are typed, or shown in a prompt, many times a day.
What is not recognised here goes to the command tree, which answers the same; a test holds the two together.
"""

from __future__ import annotations

from collections.abc import Sequence

_FLAGS = {
    "--no-pager": "no_pager",
    "--no-color": "no_color",
    "-nc": "no_color",
    "--verbose": "verbose",
    "-v": "verbose",
}
_OPTIONS = {"-s": "short", "--short": "short", "--json": "as_json"}
_OF_VERB = {"status": _OPTIONS, "log": {**_OPTIONS, "--changes-only": "changes_only", "--graph": "graph"}}
_NUMBER = ("-n", "--max-count")
"""The options of `log` that a number follows."""


def recognised(arguments: Sequence[str]) -> tuple[list[str], str, list[str]] | None:
    """The flags of `perun`, the verb and its options, if all of them are known here; else None."""
    flags: list[str] = []
    position = 0
    while position < len(arguments) and arguments[position] in _FLAGS:
        flags.append(_FLAGS[arguments[position]])
        position += 1
    verb, rest = arguments[position : position + 1], arguments[position + 1 :]
    known = _OF_VERB.get(verb[0]) if verb else None
    if known is None:
        return None
    options: list[str] = []
    words = iter(rest)
    for word in words:
        if verb[0] == "log" and word in _NUMBER:
            number = next(words, "")
            if not (number.isascii() and number.isdecimal()):
                return None
            options.append(f"limit={number}")
        elif word in known:
            options.append(known[word])
        else:
            return None
    return flags, verb[0], options


def run(arguments: Sequence[str], flags: Sequence[str], verb: str, options: Sequence[str]) -> int:
    """Answer; the exit code."""
    from perun.cli import boundary
    from perun.cli.session import Session

    short, as_json = "short" in options, "as_json" in options

    def action(session: Session) -> int:
        session.command = verb
        session.pager = "no_pager" not in flags
        session.colour = False if "no_color" in flags else None
        session.verbosity = flags.count("verbose")
        if verb == "log":
            from perun.cli.answers.log import answer

            limits = [int(one.partition("=")[2]) for one in options if one.startswith("limit=")]
            return answer(
                session,
                short=short,
                as_json=as_json,
                changes_only="changes_only" in options,
                limit=limits[-1] if limits else None,
                graph="graph" in options,
            )
        from perun.cli.answers import status

        status.answer(session, short=short, as_json=as_json)
        return 0

    return boundary.run(arguments, action)
