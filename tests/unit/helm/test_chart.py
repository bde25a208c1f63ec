"""The operator's chart, rendered by the real helm: safe pods, flags that exist, values that are checked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from hack.packaging.errors import RenderFailed
from hack.packaging.render import OPERATOR_CHART, ROOT, helm, render
from slinky_operator.settings import ENVIRONMENT_PREFIX, Settings

CHARTS = sorted(path.parent for path in (ROOT / "helm").glob("*/Chart.yaml"))
EVERYTHING: dict[str, Any] = {
    "replicas": 3,
    "image": {"repository": "example.com/op", "tag": "1.2@sha256:abc"},
    "imagePullSecrets": [{"name": "registry"}],
    "slurm": {
        "registry": "example.com/slurm",
        "version": "24.11",
        "pullPolicy": "Always",
        "priorityClassName": "site-services",
        "images": {"slurmd": "x:1"},
    },
    "nodeLabels": {
        "enabled": True,
        "configMap": {"namespace": "site", "name": "nodes"},
        "fromSlurm": True,
        "clusters": ["a/b"],
    },
    "leaderElection": {"leaseDuration": 30.5, "renewDeadline": 20, "retryPeriod": 0.5},
    "shutdownGrace": 12.5,
    "registrationPatience": 45.5,
    "slinkyNamespaces": ["slinky", "other"],
    "log": {"level": "DEBUG", "format": "json"},
    "extraArgs": ["--node-poll-interval=2"],
    "limits": {"externalClusters": 1000000, "resubmissions": 7},
    "extraEnv": [{"name": "A", "value": "b"}],
    "crds": {"upgrade": True},
    "caBundle": {"configMap": "site-cas", "key": "ca.pem"},
    "extraObjects": [{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "of-{{ .Release.Name }}"}}],
    "healthPort": 9090,
    "metrics": {
        "service": {"annotations": {"a": "b"}},
        "serviceMonitor": {"enabled": True, "labels": {"a": "b"}},
        "prometheusRule": {"enabled": True, "labels": {"release": "prometheus"}},
        "dashboards": {"enabled": True, "annotations": {"folder": "Slurm"}},
    },
    "serviceAccount": {"name": "me", "annotations": {"a": "b"}},
    "networkPolicy": {"enabled": True, "from": [{"namespaceSelector": {}}]},
    "priorityClassName": "high",
    "nodeSelector": {"a": "b"},
    "tolerations": [{"operator": "Exists"}],
    "affinity": {"nodeAffinity": {}},
    "topologySpreadConstraints": [{"maxSkew": 1}],
    "podAnnotations": {"a": "b"},
    "podLabels": {"a": "b", "app.kubernetes.io/name": "must not break the selector"},
    "nameOverride": "operator",
    "fullnameOverride": "the-operator",
}


def one(kind: str, values: dict[str, Any] | None = None) -> dict[str, Any]:
    (found,) = [obj for obj in render(values=values) if obj["kind"] == kind]
    return found


def pod_spec(values: dict[str, Any] | None = None) -> dict[str, Any]:
    spec: dict[str, Any] = one("Deployment", values)["spec"]["template"]["spec"]
    return spec


@pytest.mark.parametrize(
    "values", [{}, EVERYTHING, {"watchNamespaces": ["a", "b"]}], ids=["plain", "all", "namespaced"]
)
def test_lint_has_no_complaint(values: dict[str, Any]) -> None:
    run = helm("lint", "--strict", str(OPERATOR_CHART), "--values=-", stdin=yaml.safe_dump(values))
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.parametrize("values", [{}, EVERYTHING], ids=["plain", "all"])
def test_the_pod_has_no_privilege(values: dict[str, Any]) -> None:
    spec = pod_spec(values)
    assert spec["securityContext"] == {
        "runAsNonRoot": True,
        "runAsUser": 65532,
        "runAsGroup": 65532,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    (container,) = spec["containers"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert not {"hostNetwork", "hostPID", "hostIPC"} & set(spec)
    assert [next(iter(set(volume) - {"name"})) for volume in spec["volumes"]] in (
        ["emptyDir"],
        ["emptyDir", "configMap"],
    )


@pytest.mark.parametrize(
    "values", [{}, EVERYTHING, {"watchNamespaces": ["a", "b"]}], ids=["plain", "all", "namespaced"]
)
def test_the_operator_takes_every_flag_and_variable(values: dict[str, Any]) -> None:
    (container,) = pod_spec(values)["containers"]
    given = {
        entry["name"]: "512" if "resourceFieldRef" in entry.get("valueFrom", {}) else "here"
        for entry in container["env"]
    }
    ours = {name: value for name, value in given.items() if name.startswith(ENVIRONMENT_PREFIX)}
    assert {name.removeprefix(ENVIRONMENT_PREFIX).lower() for name in ours} <= set(Settings.model_fields)
    settings = Settings.load(container["args"], ours)
    assert settings.leader_election
    assert settings.lease_namespace == "here"
    assert settings.memory_limit == 512
    assert settings.daemon_priority_class == values.get("slurm", {}).get("priorityClassName", "")
    assert settings.namespaces == tuple(values.get("watchNamespaces", ()))
    assert settings.slinky_namespaces == tuple(values.get("slinkyNamespaces", ("slinky",)))
    (port,) = container["ports"]
    assert port["containerPort"] == settings.health_port
    assert all(
        container[probe]["httpGet"]["port"] == port["name"]
        for probe in ("startupProbe", "livenessProbe", "readinessProbe")
    )


def test_defaults_of_chart_and_operator_agree() -> None:
    (container,) = pod_spec()["containers"]
    told = Settings.load([*container["args"], "--identity=x"], {})
    own = Settings.load(["--identity=x"], {})
    differing = {name for name in Settings.model_fields if getattr(told, name) != getattr(own, name)}
    assert differing == {"images", "image_agent"}
    assert {f"localhost/{image}" for image in own.images.values()} == set(told.images.values())


def test_values_reach_the_settings() -> None:
    (container,) = pod_spec(EVERYTHING)["containers"]
    settings = Settings.load(container["args"], {})
    assert container["image"] == settings.image_agent == "example.com/op:1.2@sha256:abc"
    assert settings.images["slurmctld"] == "example.com/slurm/slurmctld:24.11"
    assert settings.images["slurmd"] == "x:1"
    assert settings.image_pull_policy == "Always"
    assert (settings.lease_duration, settings.lease_renew_deadline, settings.lease_retry_period) == (30.5, 20, 0.5)
    assert settings.node_poll_interval == 2
    assert settings.external_clusters_per_namespace == 1_000_000
    assert settings.lease_name == "the-operator"
    assert (settings.node_labels_config_map, settings.node_labels_from_slurm) == ("site/nodes", True)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, True),
        ({"watchNamespaces": ["a"]}, False),
        ({"watchNamespaces": ["a"], "watchNodes": True}, True),
        ({"watchNodes": False}, False),
    ],
)
def test_nodes_are_watched_where_that_was_granted(values: dict[str, Any], expected: bool) -> None:
    (container,) = pod_spec(values)["containers"]
    assert Settings.load(container["args"], {}).watch_nodes is expected


def test_labels_of_nodes_are_for_a_config_map_beside_the_operator_unless_said_otherwise() -> None:
    objects = render(values={"nodeLabels": {"enabled": True}}, namespace="ops")
    (deployment,) = [obj for obj in objects if obj["kind"] == "Deployment"]
    args = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
    assert Settings.load(args, {}).node_labels_config_map == "ops/slurm-config"


def test_the_certificate_and_the_authority_of_virtual_nodes_are_mounted() -> None:
    given = {"clusters": ["a/b"], "certificateSecret": "vn-tls", "clientCAConfigMap": "kubelet-ca"}
    values = {"jobs": {"enabled": True}, "virtualNodes": given, "networkPolicy": {"enabled": True}}
    found = {one["kind"]: one for one in render(values=values)}
    pod = found["Deployment"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    mounts = {one["name"]: one["mountPath"] for one in container["volumeMounts"]}
    volumes = {one["name"]: one for one in pod["volumes"]}
    assert volumes["virtual-nodes"]["secret"] == {"secretName": "vn-tls"}
    assert volumes["client-ca"]["configMap"] == {"name": "kubelet-ca"}
    assert f"--virtual-nodes-certificate={mounts['virtual-nodes']}" in container["args"]
    assert f"--virtual-nodes-client-ca={mounts['client-ca']}/ca.crt" in container["args"]
    ports = [port["port"] for rule in found["NetworkPolicy"]["spec"]["ingress"] for port in rule["ports"]]
    assert ports == ["metrics", "kubelet"]


def test_virtual_nodes_have_the_address_of_the_pod_and_their_port() -> None:
    values = {"jobs": {"enabled": True}, "virtualNodes": {"clusters": ["a/b", "c/d"], "port": 10351}}
    (container,) = pod_spec(values)["containers"]
    name = "SLURM_OPERATOR_VIRTUAL_NODES_ADDRESS"
    (address,) = [one for one in container["env"] if one["name"] == name]
    assert address["valueFrom"]["fieldRef"]["fieldPath"] == "status.podIP"
    (pod,) = [one for one in container["env"] if one["name"] == "SLURM_OPERATOR_VIRTUAL_NODES_POD"]
    assert pod["valueFrom"]["fieldRef"]["fieldPath"] == "metadata.name"
    settings = Settings.load(container["args"], {name: "10.0.0.7", pod["name"]: "slurm-operator-5d8f-x2x"})
    assert settings.virtual_nodes_pod == "slurm-operator-5d8f-x2x"
    assert settings.virtual_nodes_clusters == ("a/b", "c/d")
    assert (settings.virtual_nodes_address, settings.virtual_nodes_port) == ("10.0.0.7", 10351)
    assert {"name": "kubelet", "containerPort": 10351} in container["ports"]
    (plain,) = pod_spec({"jobs": {"enabled": True}})["containers"]
    assert [one["name"] for one in plain["ports"]] == ["metrics"]


def test_clusters_with_a_bridge_are_told() -> None:
    values = {"jobs": {"enabled": True}, "bridge": {"clusters": ["a/b", "c/d"]}}
    (container,) = pod_spec(values)["containers"]
    assert Settings.load(container["args"], {}).bridge_clusters == ("a/b", "c/d")
    assert not Settings.load(container["args"], {}).bridge_devices
    (reading,) = pod_spec({**values, "bridge": {"clusters": ["a/b"], "devices": True}})["containers"]
    assert Settings.load(reading["args"], {}).bridge_devices
    (plain,) = pod_spec({"jobs": {"enabled": True}})["containers"]
    assert Settings.load(plain["args"], {}).bridge_clusters == ()


def test_there_is_time_to_stop() -> None:
    for values in ({}, EVERYTHING):
        spec = pod_spec(values)
        grace = Settings.load(spec["containers"][0]["args"], {}).shutdown_grace
        # Giving the Lease back takes up to three seconds.
        assert spec["terminationGracePeriodSeconds"] >= grace + 5


@pytest.mark.parametrize("values", [{}, EVERYTHING], ids=["plain", "all"])
def test_selectors_match_the_pod(values: dict[str, Any]) -> None:
    objects = render(values=values)
    (deployment,) = [obj for obj in objects if obj["kind"] == "Deployment"]
    labels = deployment["spec"]["template"]["metadata"]["labels"].items()
    selector = deployment["spec"]["selector"]["matchLabels"]
    assert selector.items() <= labels
    for obj in objects:
        if obj["kind"] == "Service":
            assert obj["spec"]["selector"] == selector
        elif obj["kind"] == "NetworkPolicy":
            assert obj["spec"]["podSelector"]["matchLabels"] == selector
        elif obj["kind"] == "PodDisruptionBudget":
            assert obj["spec"]["selector"]["matchLabels"] == selector


def test_what_is_optional_is_off_until_asked_for() -> None:
    plain = {obj["kind"] for obj in render()}
    assert plain.isdisjoint({"ServiceMonitor", "PodMonitor", "PodDisruptionBudget", "Secret"})
    assert {"ServiceMonitor", "NetworkPolicy", "PodDisruptionBudget"} <= {
        obj["kind"] for obj in render(values=EVERYTHING)
    }


def test_a_pod_monitor_finds_the_pods_without_a_service() -> None:
    objects = render(
        values={"metrics": {"service": {"enabled": False}, "podMonitor": {"enabled": True, "labels": {"a": "b"}}}}
    )
    (found,) = (obj for obj in objects if obj["kind"] == "PodMonitor")
    (pods,) = (obj["spec"]["template"] for obj in objects if obj["kind"] == "Deployment")
    assert found["metadata"]["labels"]["a"] == "b"
    assert found["spec"]["selector"]["matchLabels"].items() <= pods["metadata"]["labels"].items()
    (endpoint,) = found["spec"]["podMetricsEndpoints"]
    assert endpoint["port"] in {port["name"] for port in pods["spec"]["containers"][0]["ports"]}
    assert not [obj for obj in objects if obj["kind"] == "Service"]


def test_metrics_are_for_the_namespace_of_the_monitoring_unless_said_otherwise() -> None:
    rules = one("NetworkPolicy")["spec"]["ingress"]
    peer = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}
    assert rules == [{"ports": [{"port": "metrics", "protocol": "TCP"}], "from": [peer]}]
    everybody = render(values={"networkPolicy": {"from": []}})
    found = [obj["spec"]["ingress"] for obj in everybody if obj["kind"] == "NetworkPolicy"]
    assert found == [[{"ports": [{"port": "metrics", "protocol": "TCP"}]}]]
    off = render(values={"networkPolicy": {"enabled": False}})
    assert not [obj for obj in off if obj["kind"] == "NetworkPolicy"]


def test_a_second_pod_is_started_before_the_first_one_stops() -> None:
    strategy = one("Deployment")["spec"]["strategy"]
    assert strategy == {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"replica": 2}, "replica"),
        ({"crds": {"upgrades": True}}, "upgrades"),
        ({"caBundle": {"configMap": "A"}}, "configMap"),
        ({"replicas": -1}, "replicas"),
        ({"image": {"repo": "x"}}, "repo"),
        ({"slurm": {"images": {"slurmbdb": "x"}}}, "slurmbdb"),
        ({"watchNamespaces": "default"}, "watchNamespaces"),
        ({"watchNamespaces": ["Default"]}, "watchNamespaces"),
        ({"watchNamespaces": ["a", "a"]}, "watchNamespaces"),
        ({"slinkyNamespaces": ["A"]}, "slinkyNamespaces"),
        ({"watchNodes": "yes"}, "watchNodes"),
        ({"nodeLabels": {"enabled": True}, "watchNamespaces": ["a"], "watchNodes": True}, "not together with watchNam"),
        (
            {"drainRequestsNamespace": "nv", "watchNamespaces": ["a"], "watchNodes": True},
            "drainRequestsNamespace: not together with watchNamespaces",
        ),
        ({"virtualNodes": {"clusters": ["a/b"]}}, "virtualNodes.clusters: needs jobs.enabled"),
        (
            {"virtualNodes": {"clusters": ["a/b"]}, "jobs": {"enabled": True}, "watchNamespaces": ["a"]},
            "virtualNodes.clusters: not together with watchNamespaces",
        ),
        (
            {"virtualNodes": {"clusters": ["a/b"]}, "jobs": {"enabled": True}, "watchNodes": False},
            "virtualNodes.clusters: needs watchNodes",
        ),
        ({"virtualNodes": {"clusters": ["a"]}}, "clusters"),
        ({"virtualNodes": {"port": 0}}, "port"),
        ({"bridge": {"clusters": ["a/b"]}}, "bridge.clusters: needs jobs.enabled"),
        (
            {"bridge": {"clusters": ["a/b"]}, "jobs": {"enabled": True}, "watchNamespaces": ["a"]},
            "bridge.clusters: not together with watchNamespaces",
        ),
        (
            {"bridge": {"clusters": ["a/b"]}, "jobs": {"enabled": True}, "watchNodes": False},
            "bridge.clusters: needs watchNodes",
        ),
        ({"bridge": {"clusters": ["a"]}}, "clusters"),
        ({"bridge": {"devices": True}}, "bridge.devices: needs bridge.clusters"),
        ({"jobs": {"sylabs": True}}, "jobs.sylabs: needs jobs.enabled"),
        ({"nodeLabels": {"enabled": True}, "watchNodes": False}, "nodeLabels.enabled: needs watchNodes"),
        ({"nodeLabels": {"configMap": {"name": "A"}}}, "name"),
        ({"nodeLabels": {"fromSlurm": True}}, "nodeLabels.fromSlurm: needs nodeLabels.enabled"),
        ({"nodeLabels": {"enabled": True, "fromSlurm": True}}, "nodeLabels.fromSlurm: needs nodeLabels.clusters"),
        ({"jobs": {"sylabsClusters": ["a/b"]}}, "jobs.sylabsClusters: needs jobs.sylabs"),
        ({"log": {"level": "debug"}}, "level"),
        ({"extraArgs": ["-v"]}, "extraArgs"),
        ({"leaderElection": {"leaseDuration": 5}}, "leaderElection"),
        ({"metrics": {"service": {"enabled": False}, "serviceMonitor": {"enabled": True}}}, "serviceMonitor"),
        ({"metrics": {"podMonitor": {"enabled": True}, "serviceMonitor": {"enabled": True}}}, "podMonitor"),
        ({"serviceAccount": {"create": False}}, "serviceAccount"),
    ],
)
def test_nonsense_is_refused_by_name(values: dict[str, Any], words: str) -> None:
    with pytest.raises(RenderFailed, match=words):
        render(values=values)


def test_helm_upgrades_crds_that_stay_if_it_is_to() -> None:
    assert not [obj for obj in render() if obj["kind"] == "CustomResourceDefinition"]
    objects = render(values={"crds": {"upgrade": True}})
    found = {obj["metadata"]["name"]: obj for obj in objects if obj["kind"] == "CustomResourceDefinition"}
    files = [yaml.safe_load(path.read_text()) for path in sorted((OPERATOR_CHART / "crds").glob("*.yaml"))]
    assert len(files) == len(found)
    for crd in files:
        crd["metadata"]["annotations"] = {"helm.sh/resource-policy": "keep"}
        assert found[crd["metadata"]["name"]] == crd


def test_a_bundle_of_cas_takes_the_place_of_those_of_the_image() -> None:
    spec = pod_spec(EVERYTHING)
    (container,) = spec["containers"]
    environment = {one["name"]: one.get("value") for one in container["env"]}
    mount = next(one for one in container["volumeMounts"] if one["name"] == "ca-bundle")
    assert environment["SSL_CERT_FILE"] == f"{mount['mountPath']}/ca.pem"
    (volume,) = (one for one in spec["volumes"] if one["name"] == "ca-bundle")
    assert volume["configMap"] == {"name": "site-cas", "items": [{"key": "ca.pem", "path": "ca.pem"}]}
    assert "SSL_CERT_FILE" not in {one["name"] for one in pod_spec()["containers"][0]["env"]}


def test_objects_beside_the_release_are_rendered() -> None:
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: 'in-{{ .Release.Namespace }}'}\n"
    objects = render(values={"extraObjects": [*EVERYTHING["extraObjects"], text]}, namespace="ops")
    names = {obj["metadata"]["name"] for obj in objects if obj["kind"] in {"Secret", "ConfigMap"}}
    assert names == {"of-slurm-operator", "in-ops"}


@pytest.mark.parametrize("chart", CHARTS, ids=lambda chart: chart.name)
def test_an_old_kubernetes_is_refused(chart: Path) -> None:
    values = {"server": "http://a:6820", "tokenSecret": {"name": "a"}} if chart.name == "slurm-exporter" else {}
    arguments = ("template", "a", str(chart), "--values=-")
    run = helm(*arguments, "--kube-version=1.28.15", stdin=yaml.safe_dump(values))
    assert "chart requires kubeVersion: >=1.29.0-0 which is incompatible with Kubernetes v1.28.15" in run.stderr
    for version in ("1.29.0", "1.35.4-gke.1"):
        assert helm(*arguments, f"--kube-version={version}", stdin=yaml.safe_dump(values)).returncode == 0


@pytest.mark.parametrize(
    "path",
    [
        *("limits", "limits.externalClusters", "image", "slurm.registry", "workers", "jobs", "nodeLabels", "metrics"),
        *("metrics.podMonitor", "leaderElection.leaseDuration", "log.level", "rbac", "networkPolicy", "shutdownGrace"),
    ],
)
def test_null_is_refused_where_it_means_nothing(path: str) -> None:
    values: Any = None
    for key in reversed(path.split(".")):
        values = {key: values}
    with pytest.raises(RenderFailed, match=f"missing property '{path.rpartition('.')[2]}'"):
        render(values=values)


def test_null_is_nothing_where_nothing_is_a_value() -> None:
    nothing: dict[str, Any] = {
        "watchNamespaces": None,
        "podLabels": None,
        "slurm": {"images": None},
        "metrics": {"dashboards": {"enabled": True, "labels": None}},
        "caBundle": {"configMap": "cas", "key": None},
        "checkCrds": False,
        **dict.fromkeys(("crds", "extraObjects", "affinity", "resources", "podAnnotations", "imagePullSecrets")),
    }
    assert "nil>" not in yaml.safe_dump(render(values=nothing))
    (container,) = pod_spec(nothing)["containers"]
    environment = {entry["name"]: entry.get("value") for entry in container["env"]}
    assert environment["SSL_CERT_FILE"] == "/etc/slurm-operator/ca/ca.crt"
    assert "--image-sssd=localhost/slinky/sssd:2.10" in container["args"]
