"""A collector that starts no program: schedules, resuming and checks are tested with it without waiting.

What it "measures" is written in the arguments of the job, words `key=value`: `amount=1.5` seconds, `lost=7`
events, `fails=REASON`. Nothing is lost and nothing fails where the folder of the run has a file `mended`.
Each collection is noted as a line of the file that the variable RECORD names, where it is set: the content of
the file `version`, and the arguments.
"""

from dataclasses import dataclass
from pathlib import Path

from perun.core.errors import JobFailed
from perun.plugin.api import CollectContext, Run
from perun.plugin.params import param, to_mapping
from perun.profile import incomplete
from perun.profile.factory import Profile


@dataclass(frozen=True)
class FakeParams:
    """How many resources the profile has."""

    repeat: int = param(1, minimum=1, help="The number of resources.")


class FakeCollector:
    """Makes profiles of what the job says."""

    name = "fake"
    help = "Makes profiles of what the job says, without a program."
    Params = FakeParams

    def collect(self, run: Run, params: FakeParams, ctx: CollectContext) -> Profile:
        words = dict(word.partition("=")[::2] for word in run.args.split())
        if record := run.environ.get("RECORD"):
            version = Path(run.cwd, "version")
            number = version.read_text().strip() if version.exists() else "?"
            with open(record, "a") as file:
                file.write(f"{number} {run.args}".rstrip() + "\n")
        if "fails" in words and not Path(run.cwd, "mended").exists():
            raise JobFailed(f"the command {str(run)!r} failed: {words['fails']}")
        header = {"type": "time", "units": {"time": "s"}, "cmd": run.cmd, "args": run.args}
        profile = Profile({
            "header": {**header, "workload": run.workload},
            "collector_info": {"name": self.name, "params": to_mapping(params)},
            "postprocessors": [],
        })  # fmt: skip
        amount = float(words.get("amount", 1))
        profile.update_resources(
            {"amount": amount, "type": "time", "subtype": "real", "uid": run.cmd, "order": number}
            for number in range(params.repeat)
        )
        if "lost" in words and not Path(run.cwd, "mended").exists():
            incomplete.mark(profile, [incomplete.lost(int(words["lost"]), "events")])
        return profile


PLUGIN = FakeCollector
