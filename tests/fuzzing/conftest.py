"""Programs that are fuzzed, compiled once."""

import pytest

from compiling import CompilerCache


@pytest.fixture(scope="session")
def compile_once(compiled_once: CompilerCache) -> CompilerCache:
    """Compiles each program once for all tests and processes."""
    return compiled_once
