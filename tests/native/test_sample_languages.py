"""Samples of programs in other languages, whose four functions spend known shares of the CPU time."""

import os
import shutil
import struct
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perun.collect.sample.collector import SAMPLER, SampleCollector, SampleParams, refusal
from perun.collect.sample.made import made_code
from perun.plugin.api import CollectContext, Run
from perun.profile.factory import Profile
from shares import outside

SHARES = {"tenth": 0.1, "fifth": 0.2, "third": 0.3, "most": 0.4}
LOOP = 100_000
ROUNDS = 3000
ATTEMPTS = 3
RUSTUP = os.environ.get("RUSTUP_HOME") or str(Path.home() / ".rustup")
"""Asked for before the tests get a home of their own."""
needs_sampler = pytest.mark.skipif(
    not SAMPLER.is_file() or bool(refusal()[0]), reason="sampling is not possible here: see perun doctor"
)

JAVASCRIPT = "".join(
    f"function {name}(n) {{\n  let s = 1;\n  for (let i = 0; i < n; i++) s = (Math.imul(s, 3) + i) | 0;\n"
    f"  return s;\n}}\n"
    for name in SHARES
)
CALLS = "".join(f"x ^= {name}({round(LOOP * share)}); " for name, share in SHARES.items())
JAVA = "".join(
    f"static int {name}(int n) {{ int s = 1; for (int i = 0; i < n; i++) s = s * 3 + (i ^ s >>> 3);\n"
    "return s; }\n"
    for name in SHARES
)
GO = "".join(
    f"//go:noinline\nfunc {name}(n int) int {{\n\ts := 1\n"
    "\tfor i := 0; i < n; i++ {\n\t\ts = s*3 + i\n\t}\n\treturn s\n}\n"
    for name in SHARES
)
RUST = "".join(
    f"#[inline(never)]\nfn {name}(n: u64) -> u64 {{\n    let mut s = 1u64;\n"
    "    for i in 0..n { s = std::hint::black_box(s.wrapping_mul(3) ^ i); }\n    s\n}\n"
    for name in SHARES
)
NODE = "node --no-turbo-inlining --interpreted-frames-native-stack"


def in_node(folder: Path, option: str) -> str:
    text = f"{JAVASCRIPT}let x = 0;\nfor (let i = 0; i < {2 * ROUNDS}; i++) {{ {CALLS}}}\n"
    (folder / "shares.js").write_text(text)
    return f"{NODE} {option} shares.js"


def in_java(folder: Path) -> str:
    loop = f"for (int i = 0; i < {2 * ROUNDS}; i++) {{ {CALLS}}}"
    main = f"public static void main(String[] a) {{ int x = 0; {loop} }}"
    (folder / "Shares.java").write_text(f"class Shares {{\n{JAVA}{main}\n}}\n")
    subprocess.run(["javac", "Shares.java"], cwd=folder, check=True)
    options = "-XX:+PreserveFramePointer -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit -XX:-Inline"
    return f"java {options} -cp . Shares"


def in_go(folder: Path) -> str:
    main = (
        f"func main() {{\n\tx := 0\n\tfor i := 0; i < {ROUNDS}; i++ {{\n\t\t{CALLS}\n\t}}\n\tprintln(x)\n}}\n"
    )
    (folder / "shares.go").write_text(f"package main\n\n{GO}\n{main}")
    environ = {**os.environ, "GOCACHE": str(folder / "cache"), "GO111MODULE": "off"}
    subprocess.run(["go", "build", "-o", "shares", "shares.go"], cwd=folder, env=environ, check=True)
    return "./shares"


def in_rust(folder: Path) -> str:
    main = f'fn main() {{ let mut x = 0u64; for _ in 0..{10 * ROUNDS} {{ {CALLS}}} println!("{{x}}"); }}'
    (folder / "shares.rs").write_text(f"{RUST}{main}\n")
    environ = {**os.environ, "RUSTUP_HOME": RUSTUP}
    subprocess.run(["rustc", "-O", "-g", "shares.rs"], cwd=folder, env=environ, check=True)
    return "./shares"


def truthful(command: str, folder: Path) -> Profile:
    """A profile in which each share lies within its interval of 99 %."""
    wrong: dict[str, float] = {}
    for _ in range(ATTEMPTS):
        run = Run(command, "", "", cwd=folder, environ=dict(os.environ))
        profile = SampleCollector().collect(run, SampleParams(frequency=999), CollectContext(folder))
        own: Counter[str] = Counter()
        for _, resource in profile.all_resources():
            for name in SHARES:
                if "trace" in resource and name in resource["trace"][0]["function"]:
                    own[name] += resource["samples"]
        assert own.total() > 300
        if not (wrong := outside(own, SHARES)):
            return profile
    raise AssertionError(wrong)


@needs_sampler
@pytest.mark.parametrize("option", ["--perf-prof", "--perf-basic-prof"])
def test_node(tmp_path, option) -> None:
    if not shutil.which("node"):
        pytest.skip("Node.js is not installed")
    profile = truthful(in_node(tmp_path, option), tmp_path)
    assert profile["collector_info"]["sampling"]["whole-stacks"] >= 0.95
    lines = {
        frame["line"]
        for _, resource in profile.all_resources()
        for frame in resource.get("trace", [])[:1]
        if frame["function"] == "most" and frame["source"] == "shares.js"
    }
    start = JAVASCRIPT.splitlines().index("function most(n) {") + 1
    # A map tells where functions begin, a dump each line.
    assert start + 2 in lines <= {*range(start, start + 5)} if option == "--perf-prof" else lines == {start}


@needs_sampler
@pytest.mark.slow
@pytest.mark.parametrize(("tool", "made"), [("javac", in_java), ("go", in_go), ("rustc", in_rust)])
def test_compiled_languages(tmp_path, tool, made) -> None:
    if not shutil.which(tool):
        pytest.skip(f"{tool} is not installed")
    profile = truthful(made(tmp_path), tmp_path)
    assert profile["collector_info"]["sampling"]["whole-stacks"] >= (0.9 if tool == "javac" else 0.95)


def dump(*records: bytes) -> bytes:
    """A jitdump of these records."""
    return struct.pack("=IIIIIIQQ", 0x4A695444, 1, 40, 62, 0, 1, 0, 0) + b"".join(records)


def record(kind: int, data: bytes) -> bytes:
    return struct.pack("=IIQ", kind, 16 + len(data), 0) + data


def test_code_that_moves_takes_its_lines_along(tmp_path) -> None:
    entries = b"".join(
        struct.pack("=Qii", address, line, 0) + name + b"\0"
        for address, line, name in ((100, 7, b"a.js"), (110, 8, b"\xff"))
    )
    (tmp_path / "jit-5.dump").write_bytes(
        dump(
            record(2, struct.pack("=QQ", 100, 2) + entries),
            record(0, struct.pack("=IIQQQQ", 5, 5, 0, 100, 20, 1) + b"f\0" + b"\x90" * 20),
            record(1, struct.pack("=IIQQQQQ", 5, 5, 0, 100, 1000, 20, 1)),
        )
        + b"\0\0\0\0cut off"
    )
    code = made_code(5, tmp_path)
    assert [code.at(address) for address in (99, 100, 115, 1009, 1010, 1020)] == [
        ("", "", 0), ("f", "a.js", 7), ("f", "a.js", 8), ("f", "a.js", 7), ("f", "a.js", 8), ("", "", 0)
    ]  # fmt: skip


@given(st.binary(max_size=300), st.integers(0, 3))
def test_damaged_dumps_tell_what_is_whole(tmp_path_factory, data, kind) -> None:
    folder = tmp_path_factory.mktemp("dump")
    (folder / "jit-5.dump").write_bytes(dump(record(kind, data), data))
    name, source, line = made_code(5, folder).at(100)
    assert isinstance(name, str) and isinstance(source, str) and isinstance(line, int)
