"""Names that the manual documents under `perun.logic`; Perun itself does not use them."""
