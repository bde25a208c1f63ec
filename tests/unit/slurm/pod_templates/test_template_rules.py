"""Templates of daemons: what a user may change, and what would change the daemon's identity."""

from __future__ import annotations

from typing import Any

import pytest

from slinky_operator.slurm.pod_templates.template_rules import fitted
from slinky_operator.slurm.pod_templates.templates import RefusedFragment

GENERATED: dict[str, Any] = {
    "metadata": {"labels": {"app.kubernetes.io/component": "controller"}},
    "spec": {"containers": [{"name": "slurmctld", "command": ["run"], "image": "i"}, {"name": "agent", "image": "a"}]},
}


def test_the_user_wins() -> None:
    fragment = {
        "metadata": {"labels": {"team": "x"}},
        "spec": {"priorityClassName": "high", "containers": [{"name": "slurmctld", "image": "mine"}]},
    }

    made = fitted(GENERATED, fragment, "slurmctld")

    assert made["metadata"]["labels"] == {"app.kubernetes.io/component": "controller", "team": "x"}
    assert made["spec"]["priorityClassName"] == "high"
    assert [item["image"] for item in made["spec"]["containers"]] == ["mine", "a"]


@pytest.mark.parametrize(
    ("fragment", "field"),
    [
        ({"spec": {"hostname": "x"}}, "spec.hostname"),
        ({"spec": {"restartPolicy": "Never"}}, "spec.restartPolicy"),
        (
            {"metadata": {"labels": {"app.kubernetes.io/component": "x"}}},
            "metadata.labels[app.kubernetes.io/component]",
        ),
        (
            {"metadata": {"labels": {"nodeset.slinky.slurm.net/uid": "x"}}},
            "metadata.labels[nodeset.slinky.slurm.net/uid]",
        ),
        (
            {"metadata": {"labels": {"cluster.slinky.slurm.net/uid": "x"}}},
            "metadata.labels[cluster.slinky.slurm.net/uid]",
        ),
        ({"spec": {"containers": [{"name": "agent", "$patch": "delete"}]}}, "spec.containers"),
        ({"spec": {"$patch": "replace", "containers": []}}, "spec.containers"),
        (
            {"spec": {"containers": [{"name": "slurmctld", "command": ["sleep"]}]}},
            "spec.containers[slurmctld].command",
        ),
        ({"spec": {"containers": [{"name": "slurmctld", "args": ["-i"]}]}}, "spec.containers[slurmctld].args"),
        ({"spec": {"containers": [{"image": "x"}]}}, "spec.containers[0]"),
    ],
)
def test_what_makes_something_else_of_a_daemon_is_refused_by_field(fragment: dict[str, Any], field: str) -> None:
    with pytest.raises(RefusedFragment) as caught:
        fitted(GENERATED, fragment, "slurmctld")

    assert caught.value.field == field
