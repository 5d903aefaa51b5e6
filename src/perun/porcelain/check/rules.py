"""Which checks are applied to a pair of profiles: the rules of `degradation.strategies` (manual 8.3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from perun.errors import ConfigError
from perun.plugin.params import from_mapping, nearest
from perun.porcelain.repository import Repository
from perun.profile.helpers import ProfileInfo

CONDITIONS = ("type", "cmd", "args", "workload", "collector", "postprocessor")
"""Keys of a rule that a profile has to match; besides these a rule has `method`."""


@dataclass(frozen=True)
class Rule:
    """A check with its parameters, and the conditions under which it is applied."""

    check: Any
    params: Any
    conditions: Mapping[str, str]

    def applies_to(self, info: ProfileInfo) -> bool:
        """Whether the profile meets all conditions; a dash and an underscore are the same."""
        return all(_meets(info, key, value) for key, value in self.conditions.items())


def rules(repo: Repository) -> list[Rule]:
    """The rules gathered through the configuration hierarchy, the most local first.

    :raises ConfigError: for a rule without a method or with an unknown key. :raises PluginError: for an
        unknown method.
    """
    return [_rule(repo, entry) for entry in repo.config.gather("degradation.strategies")]


def applicable(repo: Repository, all_rules: list[Rule], info: ProfileInfo) -> list[Rule]:
    """The rules for one profile: all that apply, or with `degradation.apply: first` the first of them.

    A method that several rules name is applied once, as the most local of them says.
    """
    chosen: dict[str, Rule] = {}
    for rule in all_rules:
        if rule.applies_to(info):
            chosen.setdefault(rule.check.name, rule)
            if repo.config.get("degradation.apply") == "first":
                break
    return list(chosen.values())


def _rule(repo: Repository, entry: Any) -> Rule:
    if not isinstance(entry, Mapping) or "method" not in entry:
        raise ConfigError(
            f"degradation.strategies: {entry!r} has no method",
            "write e.g. - method: average_amount_threshold",
        )
    unknown = [str(key) for key in entry if key != "method" and key not in CONDITIONS]
    if unknown:
        raise ConfigError(
            f"degradation.strategies: unknown key {unknown[0]!r} in the rule for {entry['method']}",
            nearest(unknown[0], ("method", *CONDITIONS)),
        )
    check = repo.registry.get("check", str(entry["method"]))
    settings = repo.config.section(f"degradation.{check.name}")
    params = from_mapping(check.Params, settings, f"degradation.{check.name}")
    conditions = {key: str(value) for key, value in entry.items() if key != "method"}
    return Rule(check, params, conditions)


def _meets(info: ProfileInfo, key: str, value: str) -> bool:
    if key == "postprocessor":
        return _plain(value) in [_plain(name) for name in info.head.postprocessors]
    actual = str(getattr(info, key))
    return _plain(actual) == _plain(value) if key in ("collector", "type") else actual == value


def _plain(name: str) -> str:
    return name.replace("-", "_")
