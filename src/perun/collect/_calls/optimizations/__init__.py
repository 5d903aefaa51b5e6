"""Optimisations of tracing: which functions are traced, and how often (manual 3.3.1).

Seven methods, each a pure function `(graph, previous, earlier, settings) -> Effect`, composed by `applying`
in a fixed order. `settings` has their parameters and the pipelines; `resources` finds what they need: call
graphs of this version and an earlier one, and what earlier profiles say of each function.
"""
