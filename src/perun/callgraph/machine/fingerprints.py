"""Digests of control-flow graphs."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from perun.callgraph.machine.flow import Flow


def flow_text(flow: Flow) -> str:
    """The control-flow graph as text: `3>++;5>2;1` is 3 instructions, then one of the next two blocks that
    were not named yet, 1 and 2; ..."""
    seen, texts = 0, []
    for block, after in zip(flow.blocks, flow.successors, strict=True):
        ways = ""
        for one in after:
            if one == seen + 1:
                seen, ways = one, ways + "+"
            else:
                ways += f",{one}" if ways[-1:].isdigit() else str(one)
        texts.append(f"{len(block)}>{ways}" if ways else str(len(block)))
    return ";".join(texts)


def digest(flow: str, instructions: Iterable[str] = ()) -> str:
    """16 hexadecimal digits for a control-flow graph and its instructions."""
    text = "\n".join([flow, *instructions])
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).hexdigest()
