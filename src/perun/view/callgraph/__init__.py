"""Call graph: the functions of a program and which calls which, by levels and around a function."""

from __future__ import annotations

from perun.view.callgraph.view import CallGraphParams, CallGraphView

PLUGIN = CallGraphView

__all__ = ["PLUGIN", "CallGraphParams", "CallGraphView"]
