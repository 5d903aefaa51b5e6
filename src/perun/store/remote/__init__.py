"""Places outside a repository where a team keeps its profiles: what they hold, and how each is reached.

A remote needs no server of Perun's own. It is a set of named pieces of bytes behind one contract
(:class:`perun.store.remote.contract.Remote`); what the pieces are is the same everywhere:

- `format`: one line, which tells the version of this layout;
- `packs/SHA-256`: objects of profiles, one after the other (:mod:`perun.store.remote.pack`);
- `registers/SHA-256`: who registered, or removed, which profiles (:mod:`perun.store.remote.register`);
- `heads/NAME`: small pieces that change, by compare-and-swap.

Packs and registers are named after their content and never change, so writers cannot overwrite each other,
and the profiles of a remote are the union of its registers (:mod:`perun.store.remote.register`).
"""
