"""Sharing profiles with a team: `perun push` and `perun pull`, from and to a remote (:mod:`perun.remote`)."""
