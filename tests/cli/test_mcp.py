"""`perun mcp`, driven by the client of the package that its server is made with."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from perun.cli.commands.mcp import OFFERED, schema, words_of
from perun.core.errors import UsageError
from shared import conftest_of

anyio = pytest.importorskip("anyio")
client = pytest.importorskip("mcp")
_compare = conftest_of("compare")
project, _compared = _compare.project, _compare._compared
Project = _compare.Project
Ask = Callable[[Any], Any]
TIME = 120
COUNTED = {"metric": ["counter"]}


@pytest.fixture
def asked(project: Project, environment: dict[str, str]) -> Callable[[Ask], Any]:
    """Let a coroutine talk to a server in the folder of the project."""
    from mcp.client.client import Client
    from mcp.client.stdio import StdioServerParameters

    def run(ask: Ask) -> Any:
        async def main() -> Any:
            server = StdioServerParameters(
                command=sys.executable,
                args=["-P", "-m", "perun", "mcp"],
                env={**environment, "RECORD": str(project.record)},
                cwd=project.path,
            )
            async with Client(server) as found:
                with anyio.fail_after(TIME):
                    return await ask(found)

        return anyio.run(main)

    return run


def test_the_tools_are_the_commands_with_their_options(asked: Callable[[Ask], Any]) -> None:
    async def ask(server: Any) -> Any:
        return (await server.list_tools()).tools

    tools = {one.name: one for one in asked(ask)}
    assert set(tools) == {"compare", "bench", "explain", "changes"}
    for name, one in tools.items():
        jsonschema.Draft202012Validator.check_schema(one.input_schema)
        assert one.description and all(
            item["description"] for item in one.input_schema["properties"].values()
        )
        assert one.input_schema == schema(name)
    taken = tools["compare"].input_schema["properties"]
    assert {"base", "head", "cmd", "metric", "budget", "check_output", "benchmark"} <= set(taken)
    assert not {"json", "format", "output", "fail_on"} & set(taken)
    assert taken["metric"]["type"] == "array" and taken["budget"]["type"] == "number"
    assert tools["changes"].annotations.read_only_hint


def test_a_slower_version_is_told_with_its_interval_and_what_is_next(
    asked: Callable[[Ask], Any], project: Project
) -> None:
    steps: list[str | None] = []

    async def told(progress: float, total: float | None, message: str | None) -> None:
        steps.append(message)

    async def ask(server: Any) -> Any:
        given = {"base": "HEAD~1", "head": "HEAD", "budget": 60, **COUNTED}
        return await server.call_tool("compare", given, progress_callback=told)

    done = asked(ask)
    assert not done.is_error, done
    found = done.structured_content
    assert json.loads(done.content[0].text) == found
    (verdict,) = found["verdicts"]
    assert (verdict["verdict"], verdict["decides"]) == ("Degradation", True)
    assert verdict["ratio_low"] <= verdict["ratio"] <= verdict["ratio_high"]
    assert verdict["ratio"] == pytest.approx(1.1)
    assert verdict["reason"] and verdict["what"].startswith("sh run.sh: ")
    base, head = (project.git.git("rev-parse", name)[:10] for name in ("HEAD~1", "HEAD"))
    assert found["next"] == f"perun explain {base}..{head} -c 'sh run.sh'"
    assert 0 < found["budget_left"] < 60 and found["exit_code"] == 0
    assert steps and all(str(step).startswith("comparing ") for step in steps)
    plain = json.loads(project.perun("compare", "HEAD~1", "HEAD", "--metric", "counter", "--json").out)
    assert found["answer"]["schema"] == plain["schema"] == "perun.check/1"
    (one,), (other,) = (answer["comparisons"] for answer in (found["answer"], plain))
    assert one.keys() == other.keys()
    assert one["changes"] == other["changes"]


def test_what_is_not_decided_names_the_command(asked: Callable[[Ask], Any]) -> None:
    async def ask(server: Any) -> Any:
        return await server.call_tool(
            "compare", {"base": "HEAD~1", "head": "HEAD", "budget": 1e-6, **COUNTED}
        )

    found = asked(ask).structured_content
    assert found["verdicts"][0]["verdict"] == "Unknown"
    assert found["next"].startswith("perun compare ") and "--budget" in found["next"]
    assert found["budget_left"] == 0


def test_errors_are_the_message_and_hint_of_the_command(asked: Callable[[Ask], Any]) -> None:
    wrong = [
        ("compare", {"base": "nowhere"}, "nowhere"),
        ("compare", {"bass": "HEAD"}, "compare has no argument 'bass'\nhint: it has base, head"),
        ("compare", {"base": 7.5, "metric": "cpu", "duet": "yes"}, 'duet is "yes"\nhint: give a value of'),
        ("bench", {"commands": ["no-such-program"]}, "no-such-program"),
        ("bench", {"commands": ["--save", "true"]}, "--save"),
        ("explain", {"versions": "HEAD", "collect": "nothing"}, "--collect: 'nothing' is none of"),
        ("push", {}, "there is no tool 'push'\nhint: the tools are compare, bench, explain, changes"),
    ]

    async def ask(server: Any) -> Any:
        return [await server.call_tool(name, given) for name, given, _ in wrong]

    for done, (name, given, text) in zip(asked(ask), wrong, strict=True):
        assert done.is_error, (name, given, done)
        assert text in done.content[0].text
        assert "Traceback" not in done.content[0].text


def test_bench_and_changes_answer_with_the_json_of_their_commands(asked: Callable[[Ask], Any]) -> None:
    async def ask(server: Any) -> Any:
        benched = await server.call_tool("bench", {"commands": ["sh run.sh"], "runs": 3, "warmup": 0})
        return benched, await server.call_tool("changes", {})

    benched, changes = asked(ask)
    assert benched.structured_content["answer"]["schema"] == "perun.bench/2"
    assert len(benched.structured_content["answer"]["benchmarks"][0]["times"]) == 3
    assert benched.structured_content["budget_left"] is None
    assert changes.structured_content["answer"]["schema"] == "perun.changes/2"
    assert changes.structured_content["next"] is None


def test_explain_says_what_could_not_be_seen(asked: Callable[[Ask], Any]) -> None:
    async def ask(server: Any) -> Any:
        return await server.call_tool("explain", {"versions": "HEAD~1..HEAD", "no_collect": True})

    done = asked(ask)
    assert done.is_error or done.structured_content["answer"]["schema"] == "perun.explain/1"


def test_a_call_that_is_given_up_ends_what_it_runs(
    asked: Callable[[Ask], Any], project: Project, tmp_path: Path
) -> None:
    begun = tmp_path / "begun"

    async def ask(server: Any) -> Any:
        with anyio.move_on_after(60) as scope:
            async with waiting_for(begun, scope):
                await server.call_tool("bench", {"commands": [f"touch {begun}; sleep 600"]})
        with anyio.fail_after(60):
            return await server.call_tool("changes", {})

    assert not asked(ask).is_error  # the next call gets its turn
    assert project.leftovers == []


@asynccontextmanager
async def waiting_for(path: Path, scope: Any) -> AsyncIterator[None]:
    """Give up what the block does once the file is there."""

    async def look() -> None:
        while not path.exists():
            await anyio.sleep(0.05)
        scope.cancel()

    async with anyio.create_task_group() as group:
        group.start_soon(look)
        yield
        group.cancel_scope.cancel()


def test_without_the_library_the_extra_is_named(environment: dict[str, str], tmp_path: Path) -> None:
    code = "import sys; sys.modules['anyio'] = None; from perun.__main__ import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", code, "mcp"], env=environment, cwd=tmp_path, capture_output=True, text=True,
        check=False
    )  # fmt: skip
    assert done.returncode == 9
    assert "a library that is not installed: anyio" in done.stderr and "install 'mcp>=" in done.stderr


@pytest.mark.parametrize("name", OFFERED)
def test_no_value_becomes_an_option(name: str) -> None:
    given = {key: ["--evil"] if item["type"] == "array" else "--evil"
             for key, item in schema(name)["properties"].items()
             if item["type"] == "string" or item.get("items") == {"type": "string"}}  # fmt: skip
    words = words_of(name, given)
    ends = words.index("--") if "--" in words else len(words)
    assert "--evil" not in words[:ends]
    with pytest.raises(UsageError):
        words_of(name, {"commands": [["a"]], "versions": {"a": 1}, "base": ["x"]})
