"""Raw view: the profile itself as JSON, in the layout of a pending profile (manual 2.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, TextIO

from perun.plugin.params import NoParams

if TYPE_CHECKING:
    from perun.profile.factory import Profile


class RawView:
    """Writes the profile as indented JSON."""

    name: ClassVar[str] = "raw"
    help: ClassVar[str] = "Shows the profile itself, as JSON."
    Params: ClassVar[type] = NoParams

    def render(self, profile: Profile, params: NoParams, out: TextIO) -> None:
        """Write the profile to `out`, with a line break at the end."""
        from perun.profile.formats import dumps_pending

        out.write(dumps_pending(profile).decode("utf-8").rstrip("\n") + "\n")


PLUGIN = RawView
