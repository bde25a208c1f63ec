"""Each field of a tree, changed, changes what slurmdbd is asked for."""

from __future__ import annotations

from typing import Any

import pytest

from slinky_api.v1alpha1.cluster.accounting_tree import AccountTree
from slinky_operator.cluster.parts.accounts.wanted import wanted
from tests.unit.test_every_field_counts import fields_of

BASE: dict[str, Any] = {
    "qos": [{"name": "fast"}],
    "accounts": [{"name": "a"}, {"name": "b"}],
    "users": [{"name": "u", "associations": [{"account": "a"}]}, {"name": "v"}],
}
VALUES: dict[str, Any] = {
    "prune": True, "name": "changed", "description": "x", "organization": "x", "priority": 7, "preempts": ["normal"],
    "preempt_mode": "cancel", "grace_time": "7s", "flags": ["NoDecay"], "usage_factor": 7, "usage_threshold": 0.5,
    "parent": "b", "coordinators": ["u"], "fairshare": 7, "qos": ["fast"], "default_qos": "fast", "users": ["v"],
    "default_account": "a", "admin_level": "Operator", "account": "b", "partition": "gpu",
}  # fmt: skip
LEAVES = [path for path, _, _ in fields_of(AccountTree)]


def value(name: str) -> Any:
    return VALUES.get(name, "7m" if "wall" in name else "cpu=7" if "tres" in name else 7)


@pytest.mark.parametrize("path", LEAVES)
def test_a_field_of_a_tree_that_is_changed_changes_what_is_wanted(path: str) -> None:
    base = AccountTree.model_validate(BASE)
    spec = base.model_dump(exclude_unset=True)
    at: Any = spec
    *parents, last = path.split(".")
    for parent in parents:
        name = parent.removesuffix("[]")
        at = at[name][0] if parent.endswith("[]") else at.setdefault(name, {})
    at[last] = value(last)
    changed = wanted(AccountTree.model_validate(spec), "c")
    # An account of another name is missed by its user: that is said.
    assert changed.problems == () or path == "accounts[].name"
    assert changed != wanted(base, "c")
