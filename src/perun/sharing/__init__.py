"""Sharing profiles with a team: `perun push`, `perun pull`, and the remotes."""
