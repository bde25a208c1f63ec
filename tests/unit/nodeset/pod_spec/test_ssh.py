"""Pods to which users log in while they have a job there: only where a NodeSet asks for it."""

from __future__ import annotations

from typing import Any

import pytest

from slinky_api.errors import SpecError
from slinky_operator.nodeset.model.revisions import revision
from slinky_operator.nodeset.pod_spec.validation import RefusedTemplate
from slinky_operator.slurm.pod_templates import confinement, ssh_server
from tests.unit.nodeset.pod_spec.test_builder import build, nodeset

CONFINED = {"confinement": "Constrain"}
SSH = {**CONFINED, "ssh": {}}


def container(**spec: Any) -> dict[str, Any]:
    return dict(build(spec)["spec"]["containers"][0])


def test_without_the_field_a_confined_pod_is_as_before() -> None:
    found = container(**CONFINED)
    assert found["command"] == ["/bin/sh", "-c", confinement.COMMAND[2], "slurmd"]
    assert "sshd" not in str(found)
    assert found["securityContext"] == confinement.security_context()
    assert revision.of(nodeset(**CONFINED)) == revision.of(nodeset(**CONFINED, ssh=None))


def test_sshd_runs_beside_slurmd_with_what_it_needs_and_no_more() -> None:
    found = container(**CONFINED, ssh={"port": 2222})
    assert "Port 2222" in found["command"][2]
    assert {"name": "ssh", "containerPort": 2222, "protocol": "TCP"} in found["ports"]
    before, now = (set(one["securityContext"]["capabilities"]["add"]) for one in (container(**CONFINED), found))
    assert now - before == set(ssh_server.CAPABILITIES)
    assert found["args"] == container(**CONFINED)["args"]


def test_secrets_are_mounted_and_keep_no_pod_from_starting() -> None:
    made = build({**CONFINED, "ssh": {"authorizedKeysRef": {"name": "people"}, "hostKeysRef": {"name": "hosts"}}})
    volumes = {one["name"]: one["secret"] for one in made["spec"]["volumes"] if one["name"].startswith("ssh-")}
    assert {one["secretName"] for one in volumes.values()} == {"people", "hosts"}
    assert all(one["optional"] and one["defaultMode"] == 0o400 for one in volumes.values())
    mounts = {one["mountPath"]: one for one in made["spec"]["containers"][0]["volumeMounts"]}
    assert all(mounts[path]["readOnly"] for path in (ssh_server.USERS_FOLDER, ssh_server.HOST_KEYS_FOLDER))
    assert not [one for one in build(SSH)["spec"]["volumes"] if one["name"].startswith("ssh-")]


def test_without_cgroups_of_jobs_the_field_is_refused() -> None:
    with pytest.raises(SpecError, match="ssh needs confinement Constrain"):
        nodeset(ssh={})


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"ssh": {"port": 6818}}, "spec.ssh.port"),
        (
            {
                "template": {
                    "spec": {"containers": [{"name": "slurmd", "securityContext": {"readOnlyRootFilesystem": True}}]}
                }
            },
            "spec.template.spec.containers[0].securityContext.readOnlyRootFilesystem",
        ),
        (
            {"volumeClaimTemplates": [{"metadata": {"name": ssh_server.USERS_VOLUME}}]},
            "spec.volumeClaimTemplates[0].metadata.name",
        ),
    ],
)
def test_what_would_keep_sshd_from_starting_is_refused_by_field(spec: dict[str, Any], field: str) -> None:
    with pytest.raises(RefusedTemplate) as caught:
        build({**SSH, **spec})
    assert [one.field for one in caught.value.problems] == [field]


def test_a_change_of_the_field_is_a_revision_and_can_be_restored() -> None:
    plain, ssh = nodeset(**CONFINED), nodeset(**CONFINED, ssh={"authorizedKeysRef": {"name": "people"}})
    assert len({revision.of(one) for one in (plain, nodeset(**SSH), ssh)}) == 3
    assert revision.restored(plain, revision.content(ssh)).spec.ssh == ssh.spec.ssh
    assert revision.restored(ssh, revision.content(plain)).spec.ssh is None
