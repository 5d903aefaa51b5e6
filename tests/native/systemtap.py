"""Has SystemTap check scripts against debug information where there is no kernel to build modules for."""

import os
import re
import subprocess
from pathlib import Path
from typing import Final

_OPTIONS: Final = (
    "UPROBES", "TRACEPOINTS", "ARCH_SUPPORTS_UPROBES", "UPROBE_EVENTS", "MODULES", "KPROBES", "PERF_EVENTS"
)  # fmt: skip


def fake_kernel(kernel: Path) -> Path:
    """Make a folder that looks to SystemTap like that of the headers of the running kernel."""
    for folder in ("include/generated", "include/config"):
        (kernel / folder).mkdir(parents=True)
    release = os.uname().release
    (kernel / ".config").write_text("".join(f"CONFIG_{option}=y\n" for option in _OPTIONS))
    (kernel / "include/generated/utsrelease.h").write_text(f'#define UTS_RELEASE "{release}"\n')
    (kernel / "include/generated/autoconf.h").touch()
    (kernel / "include/config/kernel.release").write_text(release + "\n")
    version, patch, sub = [*re.findall(r"\d+", release), "0", "0", "0"][:3]
    (kernel / "Makefile").write_text(f"VERSION = {version}\nPATCHLEVEL = {patch}\nSUBLEVEL = {sub}\n")
    (kernel / "System.map").write_text(Path("/proc/kallsyms").read_text())
    exported = ("uprobe_register", "uprobe_unregister")
    (kernel / "Module.symvers").write_text(
        "".join(f"0x0\t{name}\tvmlinux\tEXPORT_SYMBOL_GPL\t\n" for name in exported)
    )
    return kernel


def check_script(script: str, kernel: Path, file: Path) -> subprocess.CompletedProcess[str]:
    """Have SystemTap find all that a script names, as far as its second phase; `file` is for the script."""
    file.write_text(script)
    command = ["stap", "-r", str(kernel), "-g", "-p2", str(file)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def cannot_check(done: subprocess.CompletedProcess[str]) -> bool:
    """Whether a check failed because the kernel hides its symbols."""
    return "uprobe" in done.stderr and "not available" in done.stderr
