"""Finding changes of performance between versions: `perun check`.

`check` plans the pairs, compares them, and reports: `pairing` by `baselines`; `compare` one pair with the
profiles of `pools`, or many in `parallel`; `report` is the answer."""
