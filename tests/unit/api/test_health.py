"""Rules for conditions of Kubernetes Nodes: defaults, the budget, and what is refused."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from slinky_api.v1alpha1.nodeset import health as module
from slinky_api.v1alpha1.nodeset.health import KNOWN_CONDITIONS, Health

PAGE = Path(__file__).parents[3] / "docs" / "node-health.md"


def test_a_rule_needs_a_type_and_no_more() -> None:
    (rule,) = Health.model_validate({"nodeConditions": [{"type": "Bad"}]}).rules().values()

    assert (rule.type, rule.status, rule.for_seconds, rule.reason) == ("Bad", "True", 30, "")


def test_a_rule_of_ones_own_takes_the_place_of_a_default() -> None:
    own = {"type": "KernelDeadlock", "status": "False"}

    rules = Health.model_validate({"defaults": True, "nodeConditions": [own]}).rules()

    assert set(rules) == set(KNOWN_CONDITIONS)
    assert rules["KernelDeadlock"].status == "False"
    assert rules["ReadonlyFilesystem"].status == "True"


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"defaults": False, "nodeConditions": []},
        {"nodeConditions": [{"type": ""}]},
        {"nodeConditions": [{"type": "two words"}]},
        {"podConditions": "All", "replace": {"policy": "RecreatePod"}},
        {"defaults": True, "replace": {"policy": "RecreatePod", "maxTries": 0}},
        {"nodeConditions": [{"type": "Bad", "status": "true"}]},
        {"nodeConditions": [{"type": "Bad", "reason": "two\nlines"}]},
        {"nodeConditions": [{"type": "Bad", "reason": "x" * 201}]},
        {"nodeConditions": [{"type": "Bad", "forSeconds": -1}]},
        {"defaults": True, "maxUnhealthy": "101%"},
        {"defaults": True, "clearSeconds": 86_401},
        {"checks": []},
        {"checks": [{"name": "a"}]},
        {"checks": [{"name": "a", "use": "Disk", "script": "#!/bin/sh"}]},
        {"checks": [{"name": "a", "script": "echo"}]},
        {"checks": [{"name": "a", "script": "#!/bin/sh\r\nexit 1"}]},
        {"checks": [{"name": "a", "script": "#!/bin/sh" + "x" * 16_384}]},
        {"checks": [{"name": "A", "use": "Disk"}]},
        {"checks": [{"name": "a", "use": "Fan"}]},
        {"checks": [{"name": "a", "use": "Mounts"}]},
        {"checks": [{"name": "a", "use": "Disk", "parameters": {"MIN_FREE_MB": "1"}}]},
        {"checks": [{"name": "a", "use": "Disk", "parameters": {"PATHS": "/\n/tmp"}}]},
        {"checks": [{"name": "a", "use": "Disk", "parameters": {"MAX_USED_PERCENT": "95%"}}]},
        {"checks": [{"name": "a", "use": "GPU", "parameters": {"COUNT": ""}}]},
        {"checks": [{"name": "a", "use": "GPU", "parameters": {"CLOCKS": "yes"}}]},
        {"checks": [{"name": "a", "script": "#!/bin/sh", "parameters": {"PATH=x": "1"}}]},
        {"checks": [{"name": "a", "use": "Disk", "contexts": []}]},
        {"checks": [{"name": "a", "use": "Disk", "timeoutSeconds": 36}]},
        {"checks": [{"name": f"a{number}", "use": "Disk"} for number in range(17)]},
        {"checks": [{"name": f"a{number}", "script": "#!/bin/sh\n# " + "é" * 16_000} for number in range(13)]},
    ],
)
def test_what_means_nothing_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Health.model_validate(given)


def test_the_page_has_every_default_in_its_table_and_every_other_below() -> None:
    _, _, section = PAGE.read_text().partition("## The rules of `defaults`")
    rows = [line for line in section.partition("\n## ")[0].splitlines() if line.startswith("|")]
    named = re.findall(r"`(\w+)`", "\n".join(rows))

    assert sorted(named) == sorted(KNOWN_CONDITIONS)
    assert len(set(KNOWN_CONDITIONS)) == len(KNOWN_CONDITIONS)
    left_out = re.findall(r"`(\w*[A-Z]\w+)`", module.__doc__ or "")
    assert not set(left_out) & set(KNOWN_CONDITIONS)
