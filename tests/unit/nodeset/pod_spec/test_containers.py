"""Pods whose jobs may start containers: only where a NodeSet asks for it, and with no capability more."""

from __future__ import annotations

from typing import Any

import pytest

from slinky_api.v1alpha1.nodeset.spec import ContainerJobs
from slinky_operator.nodeset.model.revisions import revision
from slinky_operator.slurm.pod_templates import security
from tests.unit.nodeset.pod_spec.test_job_logs import nodeset, pod

UNCONFINED = {"type": "Unconfined"}


def context(**spec: Any) -> dict[str, Any]:
    return dict(pod(**spec)["spec"]["containers"][0]["securityContext"])


def test_without_the_field_nothing_changes() -> None:
    assert context() == context(containers="None") == security.slurmd()
    assert revision.of(nodeset()) == revision.of(nodeset(containers="None"))


def test_profiles_that_forbid_user_namespaces_go_and_nothing_else() -> None:
    found = context(containers="Rootless")
    assert (found.pop("seccompProfile"), found.pop("appArmorProfile")) == (UNCONFINED, UNCONFINED)
    assert found == security.slurmd()
    assert found["allowPrivilegeEscalation"] is False


def test_confined_pods_keep_what_they_have() -> None:
    resources = {"limits": {"cpu": "1", "memory": "1Gi"}}
    confined = context(confinement="Constrain", resources=resources)
    both = context(confinement="Constrain", resources=resources, containers="Rootless")
    assert both == {**confined, "seccompProfile": UNCONFINED}


@pytest.mark.parametrize("field", ["seccompProfile", "appArmorProfile"])
def test_a_profile_of_the_templates_wins(field: str) -> None:
    own = {"type": "Localhost", "localhostProfile": "mine"}
    template = {"spec": {"containers": [{"name": "slurmd", "securityContext": {field: own}}]}}
    assert context(containers="Rootless", template=template)[field] == own


def test_a_change_of_the_field_is_a_revision_and_can_be_restored() -> None:
    plain, rootless = nodeset(), nodeset(containers="Rootless")
    assert revision.of(plain) != revision.of(rootless)
    recorded = revision.content(rootless)
    assert revision.restored(plain, recorded).spec.containers is ContainerJobs.ROOTLESS
    assert revision.restored(rootless, revision.content(plain)).spec.containers is ContainerJobs.NONE
