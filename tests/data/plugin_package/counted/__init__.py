"""A collector, a postprocessor, a view and a check, by the contracts of `perun.plugin.api`."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass

from perun.plugin.api import CheckContext, CollectContext, PostprocessContext, Run, ViewContext
from perun.plugin.params import NoParams, param
from perun.profile.changes import DegradationInfo, PerformanceChange
from perun.profile.factory import Profile


@dataclass(frozen=True)
class WordsParams:
    least: int = param(0, short="-l", minimum=0, help="Leave out words that are shorter.")


class Words:
    """Counts the words that a command writes."""

    name = "words"
    help = "Counts the words that a command writes."
    Params = WordsParams

    def collect(self, run: Run, params: WordsParams, ctx: CollectContext) -> Profile:
        """A resource with the number of words."""
        done = subprocess.run(run.command().argv, cwd=run.cwd, capture_output=True, text=True, check=True)
        count = sum(len(word) >= params.least for word in done.stdout.split())
        profile = Profile({"header": {"type": "mixed", "units": {"mixed(words)": "words"}}})
        profile.update_resources(
            [{"uid": run.cmd, "type": "mixed", "subtype": "words", "amount": count, "exact": True}]
        )
        return profile


class Dozens:
    """Counts in dozens."""

    name = "dozens"
    help = "Divides all amounts by twelve."
    Params = NoParams

    def process(self, profile: Profile, params: NoParams, ctx: PostprocessContext) -> Profile:
        """The profile with other amounts."""
        resources = [dict(resource) for _, resource in profile.all_resources()]
        for resource in resources:
            resource["amount"] /= 12
        profile["resources"], profile["resource_type_map"] = {}, {}
        profile.update_resources(resources)
        ctx.note("counted in dozens")
        return profile


class Total:
    """The sum of all amounts."""

    name = "total"
    help = "Writes the sum of all amounts."
    Params = NoParams

    def render(self, profile: Profile, params: NoParams, out, ctx: ViewContext) -> None:
        """A line with the sum."""
        out.write(f"{sum(resource['amount'] for _, resource in profile.all_resources()):g} in all\n")


@dataclass(frozen=True)
class MoreWordsParams:
    limit: int = param(0, minimum=0, help="So many more words are none too many.")


class MoreWords:
    """Whether a command writes more."""

    name = "more_words"
    short = "MORE"
    help = "Tells commands that write more words."
    Params = MoreWordsParams

    def compare(self, baseline: Profile, target: Profile, params: MoreWordsParams, ctx: CheckContext):
        """A degradation where there are more than the limit allows."""
        old, new = (sum(one["amount"] for _, one in side.all_resources()) for side in (baseline, target))
        worse = new > old + params.limit
        word = PerformanceChange.Degradation if worse else PerformanceChange.NoChange
        yield DegradationInfo(word, "words", f"{old:g}", f"{new:g}", "words", new - old)
