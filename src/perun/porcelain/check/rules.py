"""Which checks are applied to a pair of profiles: the rules of `degradation.strategies` (manual 8.3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from perun.plugin.params import from_mapping
from perun.porcelain.repository import Repository
from perun.profile.helpers import ProfileInfo

CONDITIONS = ("type", "cmd", "args", "workload", "collector", "postprocessor")
"""Keys of a rule that a profile has to match; besides these a rule has `method` and :data:`INSTEAD_OF`."""
OF_TYPES: Final[Mapping[str, str]] = {"bound": "bound_classes", "island": "island_usage"}
"""The method for profiles of a type that those for measured amounts can say nothing of."""
INSTEAD_OF = "instead_of"
"""Key of a rule: another method, in whose place this one is applied where that can say nothing."""


@dataclass(frozen=True)
class Rule:
    """A check with its parameters, and the conditions under which it is applied.

    `instead_of` names the check in whose place it is applied, or is empty: then it is applied in any case.
    """

    check: Any
    params: Any
    conditions: Mapping[str, str]
    instead_of: str = ""

    def applies_to(self, info: ProfileInfo) -> bool:
        """Whether the profile meets all conditions; a dash and an underscore are the same."""
        return all(_meets(info, key, value) for key, value in self.conditions.items())


def rules(repo: Repository) -> list[Rule]:
    """The rules gathered through the configuration hierarchy, the most local first.

    :raises ConfigError: for a wrong setting of a method. :raises PluginError: for an unknown method.
    """
    return [_rule(repo, entry) for entry in repo.config.gather("degradation.strategies")]


def applicable(repo: Repository, all_rules: list[Rule], info: ProfileInfo) -> list[Rule]:
    """The rules for one profile: all that apply, or with `degradation.apply: first` the first of them, and
    what is applied in its place.

    A method that several rules name is applied once, as the most local of them says. A type that needs a
    method of its own (:data:`OF_TYPES`) gets that, and besides only those of rules that are for the type or
    its collector.
    """
    chosen: dict[str, Rule] = {}
    only_first = repo.config.get("degradation.apply") == "first"
    if info.head.type in OF_TYPES:
        all_rules = [rule for rule in all_rules if {"type", "collector"} & rule.conditions.keys()]
        all_rules.append(_rule(repo, {"method": OF_TYPES[info.head.type]}))
    for rule in all_rules:
        if rule.applies_to(info) and not (only_first and chosen and rule.instead_of not in chosen):
            chosen.setdefault(rule.check.name, rule)
    return list(chosen.values())


def params_of(repo: Repository, check: Any) -> Any:
    """The parameters that the configuration sets for a check.

    :raises ConfigError: for a wrong setting.
    """
    name = f"degradation.{check.name}"
    return from_mapping(check.Params, repo.config.section(name), name)


def _rule(repo: Repository, entry: Mapping[str, Any]) -> Rule:
    """The rule that the entry is; the configuration has checked its keys, and that it names a method."""
    check = repo.registry.get("check", str(entry["method"]))
    params = params_of(repo, check)
    conditions = {key: str(value) for key, value in entry.items() if key in CONDITIONS}
    other = entry.get(INSTEAD_OF)
    return Rule(check, params, conditions, repo.registry.get("check", str(other)).name if other else "")


def _meets(info: ProfileInfo, key: str, value: str) -> bool:
    if key == "postprocessor":
        return _plain(value) in [_plain(name) for name in info.head.postprocessors]
    actual = str(getattr(info, key))
    return _plain(actual) == _plain(value) if key in ("collector", "type") else actual == value


def _plain(name: str) -> str:
    return name.replace("-", "_")
