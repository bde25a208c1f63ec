"""Each field of a pod and of its container is used, ignored by a written list, or refused by its path."""

from __future__ import annotations

from typing import Any

import pytest

from slinky_api.v1alpha1.cluster.jobs import VirtualNodes
from slinky_operator.jobs.refusal import InvalidJob
from slinky_operator.kube.objects import Object
from slinky_operator.virtual_nodes.pods.translation import pod_fields
from slinky_operator.virtual_nodes.pods.translation.slurmjob import Translation, translate

POD_SPEC = """
activeDeadlineSeconds affinity automountServiceAccountToken containers dnsConfig dnsPolicy enableServiceLinks
ephemeralContainers hostAliases hostIPC hostNetwork hostPID hostUsers hostname hostnameOverride imagePullSecrets
initContainers nodeName nodeSelector os overhead preemptionPolicy priority priorityClassName readinessGates
resourceClaims resources restartPolicy runtimeClassName schedulerName schedulingGates securityContext serviceAccount
serviceAccountName setHostnameAsFQDN shareProcessNamespace subdomain terminationGracePeriodSeconds tolerations
topologySpreadConstraints volumes workloadRef
"""
"""The fields of PodSpec in Kubernetes 1.35."""

CONTAINER = """
args command env envFrom image imagePullPolicy lifecycle livenessProbe name ports readinessProbe resizePolicy resources
restartPolicy restartPolicyRules securityContext startupProbe stdin stdinOnce terminationMessagePath
terminationMessagePolicy tty volumeDevices volumeMounts workingDir
"""
"""The fields of Container."""

SITE = VirtualNodes(host="h")


def pod(container: dict[str, Any] | None = None, **spec: Any) -> Object:
    return {
        "metadata": {"name": "p", "namespace": "team", "uid": "u", "labels": {"a": "b"}},
        "spec": {
            "nodeName": "n",
            "restartPolicy": "Never",
            "containers": [{"name": "main", "image": "no-image", "command": ["run"], **(container or {})}],
            **spec,
        },
    }


def translated(obj: Object, **data: Any) -> Translation:
    return translate(obj, "main", SITE, data)


def test_the_lists_have_every_field_once() -> None:
    lists = (pod_fields.USED, pod_fields.IGNORED, frozenset(pod_fields.REFUSED), frozenset({"securityContext"}))
    assert sorted(name for one in lists for name in one) == sorted(POD_SPEC.split())
    within = (pod_fields.CONTAINER_USED, pod_fields.CONTAINER_IGNORED, frozenset(pod_fields.CONTAINER_REFUSED))
    assert sorted([name for one in within for name in one] + ["securityContext"]) == sorted(CONTAINER.split())


@pytest.mark.parametrize("name", sorted(pod_fields.REFUSED))
def test_a_refused_field_is_named(name: str) -> None:
    value: Any = False if name == "hostUsers" else [{"name": "x"}]
    with pytest.raises(InvalidJob, match=rf"^spec\.{name}: "):
        translated(pod(**{name: value}))


@pytest.mark.parametrize("name", sorted(pod_fields.CONTAINER_REFUSED))
def test_a_refused_field_of_the_container_is_named(name: str) -> None:
    with pytest.raises(InvalidJob, match=rf"^spec\.containers\[0\]\.{name}: "):
        translated(pod({name: [{"name": "x"}]}))


@pytest.mark.parametrize("name", sorted(pod_fields.IGNORED))
def test_an_ignored_field_changes_nothing(name: str) -> None:
    assert translated(pod(**{name: {"a": "b"}})) == translated(pod())


def test_a_field_of_a_later_kubernetes_is_refused() -> None:
    with pytest.raises(InvalidJob, match=r"^spec\.somethingNew: is a field that this operator does not know"):
        translated(pod(somethingNew=True))


def test_limits_that_a_restricted_namespace_demands_are_kept_by_every_job() -> None:
    context = {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    assert translated(pod({"securityContext": context})) == translated(pod())


@pytest.mark.parametrize(
    ("context", "path"),
    [
        ({"privileged": True}, "privileged"),
        ({"runAsUser": 0}, "runAsUser"),
        ({"capabilities": {"add": ["SYS_ADMIN"]}}, "capabilities.add"),
    ],
)
def test_rights_are_refused(context: dict[str, Any], path: str) -> None:
    with pytest.raises(InvalidJob) as refusal:
        translated(pod({"securityContext": context}))
    assert refusal.value.field == f"spec.containers[0].securityContext.{path}"


def test_requests_count_and_then_limits() -> None:
    resources = {"requests": {"cpu": "1500m"}, "limits": {"cpu": "4", "memory": "1Gi", "nvidia.com/gpu": "2"}}
    fields = translated(pod({"resources": resources})).fields
    assert (fields["cpusPerTask"], fields["memory"], fields["gres"]) == (2, "1024M", "gpu:2")


def test_a_resource_that_slurm_does_not_have_is_refused() -> None:
    with pytest.raises(InvalidJob, match=r"^spec\.containers\[0\]\.resources\.requests\[hugepages-2Mi\]: "):
        translated(pod({"resources": {"requests": {"hugepages-2Mi": "2Mi"}}}))


def test_variables_come_from_values_fields_and_config_maps() -> None:
    env = [
        {"name": "A", "value": "1"},
        {"name": "B", "value": "$(A)-$$(A)-$(C)"},
        {"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "LABEL", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['a']"}}},
        {"name": "KEY", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}},
        {"name": "NONE", "valueFrom": {"configMapKeyRef": {"name": "d", "key": "k", "optional": True}}},
        {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
    ]
    container = {
        "env": env,
        "envFrom": [{"configMapRef": {"name": "c"}, "prefix": "P_"}],
        "resources": {"limits": {"cpu": "1500m"}},
        "command": ["run", "$(A)"],
    }
    fields = translate(pod(container), "main", SITE, {"c": {"k": "v"}, "d": None}).fields
    assert {one["name"]: one["value"] for one in fields["env"]} == {
        "P_k": "v",
        "A": "1",
        "B": "1-$(A)-$(C)",
        "NAME": "p",
        "LABEL": "b",
        "KEY": "v",
        "CPU": "2",
    }
    assert fields["command"] == ["run", "1"]


@pytest.mark.parametrize(
    ("volume", "path"),
    [
        ({"hostPath": {"path": "/"}}, "spec.volumes[0].hostPath"),
        ({"secret": {"secretName": "s"}}, "spec.volumes[0].secret"),
        ({"persistentVolumeClaim": {"claimName": "c"}}, "spec.volumes[0].persistentVolumeClaim.claimName"),
        ({"configMap": {"name": "c"}}, "spec.volumes[0].configMap.name"),
    ],
)
def test_a_volume_that_is_not_on_the_nodes_is_refused(volume: dict[str, Any], path: str) -> None:
    with pytest.raises(InvalidJob) as refusal:
        translate(pod({"image": "alpine"}, volumes=[{"name": "v", **volume}]), "main", SITE, {})
    assert refusal.value.field == path


def test_the_token_of_the_service_account_is_dropped() -> None:
    volume = {"name": "kube-api-access", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}
    mount = {"name": "kube-api-access", "mountPath": "/var/run/secrets"}
    assert translated(pod({"volumeMounts": [mount]}, volumes=[volume])) == translated(pod())


@pytest.mark.parametrize("runtime", ["Slurm", "Apptainer", "Pyxis"])
def test_texts_of_users_are_words_of_the_script(runtime: Any) -> None:
    evil = "'; touch /tmp/evil; '\n#SBATCH --uid=0"
    data = {"c": {"file": evil}}
    container: dict[str, Any] = {"image": "alpine:3", "command": [evil], "args": [evil]}
    container["volumeMounts"] = [{"name": "v", "mountPath": "/data"}]
    obj = pod(container, volumes=[{"name": "v", "configMap": {"name": "c"}}])
    script = translate(obj, "main", VirtualNodes(host="h", runtime=runtime), data).fields["script"]
    # Slurm reads such lines up to the first command, which comes before all texts of users.
    lines = script.splitlines()
    assert lines[1] == "set -eu"
    assert script.count("'\"'\"'; touch /tmp/evil; '\"'\"'") == 3
