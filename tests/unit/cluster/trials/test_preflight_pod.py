"""What a preflight's pod may access, and as which user it runs."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_operator.cluster.daemons import Images
from slinky_operator.cluster.rollout.preflight.slurmd_kinds import kinds
from slinky_operator.cluster.trials.pods import TrialInput
from slinky_operator.cluster.trials.preflight_pod import Preflight, SlurmdKind, preflight
from slinky_operator.slurm.conf import Parsed, parse
from slinky_operator.slurm.conf.programs import Programs, programs
from slinky_operator.slurm.pod_templates import confinement
from slinky_operator.slurm.pods.exit_messages import short
from tests.unit.cluster.world import cluster_object, node_set_object

IMAGES = Images({"slurmctld": "slurmctld:1", "slurmrestd": "slurmrestd:1", "agent": "agent:1", "slurmd": "slurmd:1"})
FILES = {"slurm.conf": "ClusterName=x\n"}


def make(spec: dict[str, Any] | None = None, *node_sets: dict[str, Any]) -> Preflight:
    found = [NodeSet.parse(one) for one in node_sets]
    tried = kinds(found, IMAGES) or (SlurmdKind(IMAGES.of("slurmd")),)
    return preflight(TrialInput(Cluster.parse(cluster_object(spec)), IMAGES, FILES), tried)


def test_it_passes_the_restricted_pod_security_level() -> None:
    spec = make().pod.body["spec"]
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert spec["automountServiceAccountToken"] is False
    for container in spec["containers"]:
        context = container["securityContext"]
        assert context["runAsNonRoot"] is True
        assert context["allowPrivilegeEscalation"] is False
        assert context["capabilities"] == {"drop": ["ALL"]}
    assert {tuple(volume)[1] for volume in spec["volumes"]} == {"configMap", "emptyDir"}


def test_it_has_neither_key_nor_state_nor_the_address_of_the_real_slurmctld() -> None:
    made = make({"controller": {"template": {"spec": {"volumes": [{"name": "more", "persistentVolumeClaim": {}}]}}}})
    spec = made.pod.body["spec"]
    assert not any("secret" in volume or "projected" in volume for volume in spec["volumes"])
    assert not any("persistentVolumeClaim" in volume for volume in spec["volumes"])
    assert spec["hostname"] == "slurm-controller-0"
    assert spec["hostAliases"] == [
        {"ip": "127.0.0.1", "hostnames": ["slurm-controller-0", "slurm-controller-0.slurm-controller.here.svc"]}
    ]
    assert "cluster.slinky.slurm.net/uid" not in made.pod.body["metadata"]["labels"], "it is no slurmd pod"


def test_it_knows_other_hosts_as_the_real_slurmctld_does_and_has_none_of_its_sidecars() -> None:
    template = {
        "spec": {
            "hostAliases": [{"ip": "10.0.0.9", "hostnames": ["ldap"]}],
            "containers": [{"name": "more", "image": "x"}],
        }
    }
    spec = make({"controller": {"template": template}}).pod.body["spec"]
    assert [one["ip"] for one in spec["hostAliases"]] == ["10.0.0.9", "127.0.0.1"]
    assert [one["name"] for one in spec["containers"]] == ["slurmctld", "slurmd-0"]


def test_it_follows_the_users_pod_template_where_that_cannot_hurt() -> None:
    template = {
        "spec": {
            "nodeSelector": {"disk": "fast"},
            "tolerations": [{"operator": "Exists"}],
            "volumes": [{"name": "plugins", "configMap": {"name": "plugins"}}],
            "containers": [
                {"name": "slurmctld", "image": "mine:2", "volumeMounts": [{"name": "plugins", "mountPath": "/plugins"}]}
            ],
        }
    }
    spec = make({"controller": {"template": template}}).pod.body["spec"]
    assert spec["nodeSelector"] == {"disk": "fast"}
    assert spec["tolerations"] == [{"operator": "Exists"}]
    assert spec["containers"][0]["image"] == "mine:2"
    assert {"name": "plugins", "mountPath": "/plugins"} in spec["containers"][0]["volumeMounts"]


def test_each_way_of_running_slurmd_is_tried_once() -> None:
    privileged = {"spec": {"containers": [{"name": "slurmd", "securityContext": {"privileged": True}}]}}
    made = make(
        None,
        node_set_object("a"),
        node_set_object("b"),
        node_set_object("c", {"template": privileged}),
        node_set_object("d", {"image": "other:1"}),
    )
    containers = made.pod.body["spec"]["containers"][1:]
    tried = {(one["image"], one["securityContext"].get("privileged", False)) for one in containers}
    assert tried == {("slurmd:1", False), ("slurmd:1", True), ("other:1", False)}
    assert len(containers) == 3
    assert all(
        "allowPrivilegeEscalation" not in one["securityContext"]
        for one in containers
        if one["securityContext"].get("privileged")
    )
    # One of them is root, so all are: SlurmdUser is one for the whole configuration.
    assert all(one["securityContext"]["runAsUser"] == 0 for one in containers)
    assert made.config_map is not None
    assert "SlurmdUser=root" in made.config_map.body["data"]["slurm.conf"]


def test_its_name_tells_what_it_tries() -> None:
    assert make().name == make().name
    assert make().name != make(None, node_set_object("d", {"image": "other:1"})).name
    assert len(make().name) <= 63


def test_a_confined_slurmd_is_tried_with_its_cgroups_and_files() -> None:
    spec = make(None, node_set_object("a", {"confinement": "Constrain"})).pod.body["spec"]
    (container,) = [one for one in spec["containers"] if one["name"] == "slurmd-0"]
    assert container["securityContext"] == confinement.security_context()
    assert {"name": "config", "mountPath": confinement.GIVEN_FOLDER, "readOnly": True} in container["volumeMounts"]
    assert {"name": "PREPARE", "value": confinement.FIRST_PROCESS} in container["env"]
    assert "-f /run/slurm/conf/slurm.conf" in container["command"][2]
    # slurmctld beside it has no more rights than without.
    assert spec["containers"][0]["securityContext"]["capabilities"] == {"drop": ["ALL"]}


def looked_for(made: Preflight) -> dict[str, str]:
    """The programs that each container looks for."""
    return {
        one["name"]: value["value"]
        for one in made.pod.body["spec"]["containers"]
        for value in one["env"]
        if value["name"] == "PROGRAMS"
    }


def test_programs_are_looked_for_in_the_image_of_the_daemon_that_runs_them_unless_a_volume_has_them() -> None:
    files = {"slurm.conf": "Prolog=/opt/prolog\nEpilog=/site/bin/epilog\nPrologSlurmctld=/opt/ctld\nTaskProlog=named\n"}
    mounts = [{"name": "site", "mountPath": "/site"}]

    def container(**more: Any) -> dict[str, Any]:
        return {"template": {"spec": {"containers": [{"name": "slurmd", **more}]}}}

    found = [
        NodeSet.parse(node_set_object("a", {"image": "a:1"})),
        NodeSet.parse(node_set_object("b", {"image": "b:1", **container(volumeMounts=mounts)})),
        NodeSet.parse(node_set_object("c", {"image": "c:1", **container(command=["sh", "-c", "make them"])})),
    ]
    tried = kinds(found, IMAGES)
    assert [one.image for one in tried] == ["a:1", "b:1", "c:1"]
    made = preflight(
        TrialInput(Cluster.parse(cluster_object()), IMAGES, files),
        tried,
        programs(parse(files["slurm.conf"]), Parsed()),
    )
    assert looked_for(made) == {
        "slurmctld": "PrologSlurmctld=/opt/ctld",
        "slurmd-0": "Prolog=/opt/prolog\nEpilog=/site/bin/epilog",
        "slurmd-1": "Prolog=/opt/prolog",
    }
    # Nothing is looked for in a slurmd of which nothing is known.
    stock = preflight(
        TrialInput(Cluster.parse(cluster_object()), IMAGES, files),
        (SlurmdKind("x"),),
        programs(parse(files["slurm.conf"]), Parsed()),
    )
    assert [*looked_for(stock)] == ["slurmctld"]


def test_slurmctlds_volumes_that_a_preflight_has_not_are_left_out() -> None:
    files = {"slurm.conf": "PrologSlurmctld=/claimed/program\n"}
    spec = {
        "containers": [{"name": "slurmctld", "volumeMounts": [{"name": "more", "mountPath": "/claimed"}]}],
        "volumes": [{"name": "more", "persistentVolumeClaim": {"claimName": "more"}}],
    }
    cluster = Cluster.parse(cluster_object({"controller": {"template": {"spec": spec}}}))
    made = preflight(TrialInput(cluster, IMAGES, files), (), programs(parse(files["slurm.conf"]), Parsed()))
    assert not looked_for(made)


@pytest.mark.parametrize("container", ["slurmctld", "slurmd-0"])
def test_a_program_that_is_not_there_is_refused_by_name(tmp_path: Path, container: str) -> None:
    there, plain = tmp_path / "there", tmp_path / "plain"
    for one, mode in ((there, 0o755), (plain, 0o644)):
        one.write_text("#!/bin/sh\n")
        one.chmod(mode)
    (tmp_path / "folder").mkdir()
    files = {"slurm.conf": f"Prolog={tmp_path}/gone\nEpilog={there}\nPrologSlurmctld={plain}\nTaskProlog=/no/such/x\n"}
    tried = kinds([NodeSet.parse(node_set_object("a"))], IMAGES)
    made = preflight(
        TrialInput(Cluster.parse(cluster_object()), IMAGES, files),
        tried,
        programs(parse(files["slurm.conf"]), Parsed()),
    )
    (found,) = (one for one in made.pod.body["spec"]["containers"] if one["name"] == container)
    script = found["command"][-1].replace("/preflight", str(tmp_path / "folder"))
    script = script.replace("/dev/termination-log", str(tmp_path / "said"))
    (tmp_path / "folder" / "ready").touch()
    environment = {one["name"]: one["value"] for one in found["env"]}
    ended = subprocess.run(["/bin/sh", "-c", script], env={**environment, "PATH": os.environ["PATH"]}, check=False)
    assert ended.returncode == 1
    said = (tmp_path / "said").read_text()
    wanted = {
        "slurmctld": f"error: PrologSlurmctld={plain}: no such program in this daemon's image\n",
        "slurmd-0": f"error: Prolog={tmp_path}/gone: no such program in this daemon's image\n"
        "error: TaskProlog=/no/such/x: no such program in this daemon's image\n",
    }
    assert said == wanted[container]
    assert short(said)
    assert (tmp_path / "folder" / ("refused" if container == "slurmctld" else "told-preflight-0")).exists()


def test_a_program_that_is_no_news_and_ends_no_job_holds_nothing_up() -> None:
    text = "Prolog=/opt/prolog\nTaskProlog=/opt/task\nHealthCheckProgram=/opt/check\nEpilog=/opt/*.sh\n"
    assert programs(parse(text), parse(text)) == Programs((), ("Prolog=/opt/prolog",))
    assert programs(parse(text), Parsed()).slurmd == (
        "Prolog=/opt/prolog", "TaskProlog=/opt/task", "HealthCheckProgram=/opt/check"
    )  # fmt: skip
