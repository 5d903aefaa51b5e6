"""Why a version became slower: `perun explain`.

The main path is `explaining.explain`: plan, collect, compare costs, find lines. In the order of the work:

- what: `plan` (two versions, the configurations);
- measuring: `collecting` (what is stored, and what is missing, in a working copy of each side);
- comparing: `costs` (what each function costs by itself), `sites` (memory), `callers`, `growing`;
- the sources: `changed_lines` (of the diff), `functions` (where they begin and end), `debug_lines`
  (the same by debug information);
- the answer: `data`; `flames` are its graphs.
"""
