"""`perun mcp`: the commands that an agent asks for as tools of the Model Context Protocol."""

from __future__ import annotations

import json
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from perun import __version__
from perun.cli.answers.check.wording import quoted
from perun.cli.commands.bench import bench
from perun.cli.commands.changes import changes
from perun.cli.commands.compare import compare
from perun.cli.commands.explain import explain
from perun.cli.session import Session
from perun.cli.table import clean
from perun.core.errors import PluginError, UsageError
from perun.core.extras import install_command
from perun.core.process import programs
from perun.core.process.ending import GRACE
from perun.measurement.verdict import UNDECIDED
from perun.profile.changes import PerformanceChange

if TYPE_CHECKING:
    import mcp_types as types
    from mcp.server import Server, ServerRequestContext

PERUN: Final = (sys.executable, "-P", "-m", "perun", "-v")
"""How a tool calls its command: with `-v`, each step is a line of standard error."""
OFFERED: Final = {
    "compare": {"base": "What to compare with: a version; by default where the branch began.",
                "head": "The version to look at; by default the working directory as it is."},
    "bench": {"commands": "The commands, each with its arguments."},
    "explain": {"versions": "The version that costs more, or A..B.",
                "location": "A function, where one alone is asked for."},
    "changes": {"versions": "A..B, or the newest version; the whole history by default."},
}  # fmt: skip
"""The tools, and what their arguments are, which click has no help of."""
COMMANDS: Final[Mapping[str, click.Command]] = {
    "compare": compare, "bench": bench, "explain": explain, "changes": changes,
}  # fmt: skip
LEFT_OUT: Final = frozenset(
    ("as_json", "format", "output", "fail_on", "help", "minor_given", "save", "initializes", "every", "seed")
)
"""Options that a tool has not: how the answer is written, and what changes the configuration."""
EVERY: Final = 0.2
"""Seconds between two reports of the progress."""
_STEP: Final = re.compile(r"(?:comparing|measuring|explaining|reading versions) .*")


class Called(NamedTuple):
    """A command that has ended. :param notes: what it said besides the answer and its progress."""

    code: int
    answer: dict[str, Any] | None
    error: str
    notes: tuple[str, ...]


@click.command()
@click.pass_obj
def mcp(session: Session) -> None:
    """Serve tools to an agent: compare, bench, explain, changes.

    A program that speaks the Model Context Protocol starts this in the folder of the project, and talks on
    standard input and output; nobody types it. Each tool runs the command of its name, one at a time, and
    answers with its JSON, the verdicts with their intervals and reasons, the next command, and what is left
    of the budget.
    """
    try:
        import anyio
        from mcp.server.stdio import stdio_server
    except ImportError as problem:
        raise PluginError(
            f"perun mcp needs a library that is not installed: {problem.name}",
            f"install it: {install_command('mcp')}",
        ) from None
    server = _server(session)

    async def serve() -> None:
        async with stdio_server() as (given, taken):
            await server.run(given, taken, server.create_initialization_options())

    anyio.run(serve)


def _server(session: Session) -> Server[Any]:
    import anyio
    import mcp_types as types
    from anyio import from_thread, to_thread
    from mcp.server import Server

    alone = anyio.Lock()  # what is measured must not disturb what is measured

    async def listed(ctx: ServerRequestContext[Any], params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_tool(name) for name in OFFERED])

    async def called(
        ctx: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        given = params.arguments or {}
        try:
            words = words_of(params.name, given)
        except UsageError as problem:
            return _result(types, f"{problem.message}\nhint: {problem.hint}", None)
        started: list[programs.Program] = []

        def tell(count: int, line: str) -> None:
            from_thread.run(ctx.session.report_progress, count, None, line)

        async with alone:
            begun = time.monotonic()
            try:
                done = await to_thread.run_sync(
                    lambda: run(words, session, tell, started), abandon_on_cancel=True
                )
            except anyio.get_cancelled_exc_class():
                for program in started:
                    program.end(GRACE)
                raise
        if done.answer is None:
            return _result(types, done.error, None)
        seconds = time.monotonic() - begun
        told = about(done, given, seconds)
        return _result(types, done.error, told)

    return Server(
        "perun",
        version=__version__,
        instructions="Measures and explains the performance of the project in the current folder, by its git "
        "versions. Begin with compare after a change; call what `next` names.",
        on_list_tools=listed,
        on_call_tool=called,
    )


def _result(library: Any, error: str, told: dict[str, Any] | None) -> types.CallToolResult:
    texts = [*([error] if error else []), *([json.dumps(told)] if told is not None else [])]
    content = [library.TextContent(type="text", text=text) for text in texts]
    result: types.CallToolResult = library.CallToolResult(
        content=content, structured_content=told, is_error=bool(error)
    )
    return result


def _tool(name: str) -> types.Tool:
    import mcp_types as library

    command = COMMANDS[name]
    found: types.Tool = library.Tool(
        name=name,
        description=(command.help or "").partition("\n\n\b")[0],
        input_schema=schema(name),
        annotations=library.ToolAnnotations(read_only_hint=name == "changes", open_world_hint=False),
    )
    return found


def _params(name: str) -> dict[str, click.Parameter]:
    """What a tool takes, by name: the arguments of its command, and the long options."""
    found: dict[str, click.Parameter] = {}
    for one in COMMANDS[name].params:
        if one.name and one.name not in LEFT_OUT:
            long = next((flag for flag in one.opts if flag.startswith("--")), one.name)
            found[long.lstrip("-").replace("-", "_")] = one
    return found


def schema(name: str) -> dict[str, Any]:
    """The JSON schema of what a tool takes, made of the options of its command."""
    properties: dict[str, Any] = {}
    for key, one in _params(name).items():
        kind: dict[str, Any] = {"type": _type_of(one)}
        if isinstance(one.type, click.Choice):
            kind["enum"] = list(one.type.choices)
        if _is_list(one):
            kind = {"type": "array", "items": kind}
        text = OFFERED[name].get(key, "") or getattr(one, "help", None) or ""
        properties[key] = kind | {"description": text}
    needed = ["commands"] if name == "bench" else ["versions"] if name == "explain" else []
    return {
        "type": "object",
        "properties": properties,
        "required": needed,
        "additionalProperties": False,
    }


def _is_list(one: click.Parameter) -> bool:
    return one.multiple or one.nargs == -1


def _type_of(one: click.Parameter) -> str:
    if getattr(one, "is_flag", False):
        return "boolean"
    if isinstance(one.type, click.types.FloatParamType):
        return "number"
    return "integer" if isinstance(one.type, click.types.IntParamType) else "string"


def words_of(name: str, given: Mapping[str, Any]) -> list[str]:
    """The words of the command. No value is taken for an option, whatever it begins with.

    :raises UsageError: where there is no such tool or argument, or a value is of another type.
    """
    if name not in OFFERED:
        raise UsageError(f"there is no tool {name!r}", f"the tools are {', '.join(OFFERED)}")
    known = _params(name)
    options, arguments = [name, "--json"], list[str]()
    for key in given:
        if key not in known:
            raise UsageError(f"{name} has no argument {key!r}", f"it has {', '.join(known)}")
    missing = False
    for key, one in known.items():
        value = given.get(key)
        values = value if _is_list(one) and isinstance(value, list) else [value]
        if value in (None, False, "", []):
            missing |= isinstance(one, click.Argument)
            continue
        if any(isinstance(each, bool) != (_type_of(one) == "boolean") for each in values) or not all(
            isinstance(each, str | int | float) for each in values
        ):
            raise UsageError(f"{key} is {json.dumps(value)}", f"give a value of the type {_type_of(one)}")
        if isinstance(one, click.Argument):
            if missing:
                raise UsageError(f"{key} needs what comes before it", "give that too")
            arguments += map(str, values)
        else:
            flag = next(flag for flag in one.opts if flag.startswith("--"))
            options += [flag if each is True else f"{flag}={each}" for each in values]
    return [*options, "--", *arguments] if arguments else options


def run(
    words: Sequence[str],
    session: Session,
    tell: Callable[[int, str], None],
    started: list[programs.Program],
) -> Called:
    """Run a command of Perun to its end.

    :param tell: gets how many steps there were, and the newest. :param started: gets the process.
    """
    lines: list[str] = []
    with programs.Program(
        [*PERUN, *words], cwd=session.cwd, environ=session.environ, stdout=programs.PIPE, stderr=programs.PIPE
    ) as program:
        started.append(program)
        answers: list[bytes] = []
        assert program.stdout is not None and program.stderr is not None
        reader = threading.Thread(target=lambda out: answers.append(out.read()), args=(program.stdout,))
        reader.start()
        count, last = 0, 0.0
        for raw in program.stderr:
            line = clean(raw.decode(errors="replace")).strip()
            if not _STEP.fullmatch(line):
                lines.append(line)
            elif time.monotonic() - last >= EVERY:
                count, last = count + 1, time.monotonic()
                tell(count, line)
        reader.join()
        code = program.wait()
    try:
        answer = json.loads(answers[0])
    except ValueError:
        answer = None
    error = "\n".join(
        line.removeprefix("error: ") for line in lines if line.startswith(("error: ", "hint: "))
    )
    if code and not error:
        error = f"perun {words[0]} ended with the exit code {code}"
    rest = (line for line in lines if line and not line.startswith(("error: ", "hint: ")))
    return Called(code, answer if isinstance(answer, dict) else None, error if code else "", tuple(rest))


def about(done: Called, given: Mapping[str, Any], seconds: float) -> dict[str, Any]:
    """The answer of a tool: that of the command, and what an agent reads first.

    :param given: to the tool. :param seconds: that it took.
    """
    answer = done.answer or {}
    budget = given.get("budget")
    return {
        "verdicts": [*verdicts(answer)],
        "next": following(answer, given),
        "seconds": round(seconds, 3),
        "budget_left": None if budget is None else max(0.0, round(float(budget) - seconds, 3)),
        "notes": list(done.notes),
        "exit_code": done.code,
        "answer": answer,
    }


_KEYS: Final = ("verdict", "ratio", "ratio_low", "ratio_high", "reason", "decides")


def _told(what: str, found: Mapping[str, Any]) -> dict[str, Any]:
    return {"what": what, **{key: found.get(key) for key in _KEYS}}


def _command_of(found: Mapping[str, Any]) -> str:
    return " ".join(str(found[key]) for key in ("cmd", "args", "workload") if found[key])


def verdicts(answer: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """What was found of each series, in the order of the answer, with interval and reason."""
    for one in answer.get("comparisons", ()):
        for change in one["changes"]:
            yield _told(f"{_command_of(one)}: {change['location']}", change)
        if not one["changes"] and one["reason"]:
            verdict = "NoChange" if one["same"] else None
            yield _told(
                _command_of(one), {"verdict": verdict, "reason": one["reason"], "decides": one["same"]}
            )
    for one in answer.get("benchmarks", ()):
        yield _told(f"{one['command']}: {one['measured']['metric']}", one["difference"] or {})
    for one in answer.get("configurations", ()):
        for cost in one["totals"]:
            yield _told(f"{one['command']}: {cost['metric']}", cost)
        for cause in one["causes"]:
            yield _told(cause["name"] or cause["path"], {"reason": cause["sentence"]})
        for function in one["functions"]:
            yield _told(function["location"], {"reason": function["sentence"]})
    for one in answer.get("changes", ()):
        for step in one["steps"]:
            yield _told(f"{one['version'][:10]} {_command_of(step)}: {step['location']}", step)


def following(answer: Mapping[str, Any], given: Mapping[str, Any]) -> str | None:
    """The command that decides what is open, or explains what got slower; None where nothing is left."""
    words: list[str] = []
    for one in answer.get("comparisons", ()):
        session = one["session"]
        if session is None:
            continue
        open_ = any(PerformanceChange[change["result"]] in UNDECIDED for change in one["changes"])
        slower = any(not _is_better(change["result"]) for change in one["changes"] if change["decides"])
        head = [] if session["uncommitted"] else [session["head"][:10]]
        if slower and head and not words:
            words = ["explain", f"{session['base'][:10]}..{head[0]}", *_options(one)]
        elif open_:
            seconds = 2 * float(given.get("budget") or 60)
            words = ["compare", session["base"][:10], *head, *_options(one), "--budget", f"{seconds:g}"]
            break
    for one in answer.get("benchmarks", ()):
        found = one["difference"]
        if found and found["verdict"] and (not found["decides"] or not _is_better(found["verdict"])):
            words = words or ["compare", found["since"][:10], *_options(one)]
    for one in answer.get("changes", ()):
        for step in one["steps"]:
            if step["degradation"] and not (step["taken_back"] or step["acknowledged"]):
                words = ["explain", one["version"][:10]]  # the newest one stands last
    return quoted(["perun", *words]) if words else None


def _is_better(verdict: str) -> bool:
    return PerformanceChange[verdict].value >= 0


def _options(found: Mapping[str, Any]) -> list[str]:
    named = (("-c", found["cmd"]), ("-a", found["args"]), ("-w", found["workload"]))
    return [word for flag, value in named if value for word in (flag, value)]
