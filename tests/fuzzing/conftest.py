"""Programs that are fuzzed, compiled once."""

from __future__ import annotations

import os

import pytest

from compiling import CompilerCache


@pytest.fixture(scope="session")
def compile_once(tmp_path_factory: pytest.TempPathFactory) -> CompilerCache:
    """Compiles each program once for all tests and processes."""
    own = tmp_path_factory.getbasetemp()
    return CompilerCache((own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "compiled")
