"""Digests of control-flow graphs."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from perun.callgraph.machine.flow import Flow


def flow_text(flow: Flow) -> str:
    """The control-flow graph as text: `3>1,2;5>2;1` is 3 instructions, then block 1 or 2, ..."""
    return ";".join(
        f"{len(block)}>{','.join(map(str, after))}" if after else str(len(block))
        for block, after in zip(flow.blocks, flow.successors, strict=True)
    )


def digest(flow: str, instructions: Iterable[str] = ()) -> str:
    """16 hexadecimal digits for a control-flow graph and its instructions."""
    text = "\n".join([flow, *instructions])
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).hexdigest()
