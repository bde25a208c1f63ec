"""The chart of a Slurm cluster renders a Cluster and NodeSets that the API accepts."""

from __future__ import annotations

from typing import Any

import pytest

from hack.packaging.errors import RenderFailed
from hack.packaging.render import EXPORTER_CHART, OPERATOR_CHART, ROOT, SLURM_CHART, helm, render
from slinky_api import labels
from slinky_api.v1alpha1 import Cluster, NodeSet
from slinky_api.v1alpha1.nodeset.spec import NodeSetSpec
from slinky_operator.slurm import naming
from tests.unit.conversion.schemas import KINDS, errors

JOBS_CHARTS = tuple(ROOT / "helm" / name for name in ("slurm-jobs", "slurm-sylabs-jobs"))


def rendered(values: dict[str, Any] | None = None) -> tuple[Cluster, dict[str, NodeSet]]:
    objects = render(SLURM_CHART, values, release="hpc", namespace="slurm")
    (cluster,) = [Cluster.parse(obj) for obj in objects if obj["kind"] == "Cluster"]
    nodesets = [NodeSet.parse(obj) for obj in objects if obj["kind"] == "NodeSet"]
    assert {obj["kind"] for obj in objects} <= {"Cluster", "NodeSet", "NetworkPolicy"}
    return cluster, {nodeset.name: nodeset for nodeset in nodesets}


def test_lint_has_no_complaint() -> None:
    run = helm("lint", "--strict", str(SLURM_CHART))
    assert run.returncode == 0, run.stdout + run.stderr


def test_without_values_there_are_two_nodes() -> None:
    cluster, nodesets = rendered()
    assert (cluster.name, cluster.namespace) == ("hpc", "slurm")
    assert nodesets["compute"].spec.cluster_name == "hpc"
    assert nodesets["compute"].spec.replicas == 2


def test_specs_are_handed_on_as_they_are() -> None:
    cluster, nodesets = rendered(
        {
            "clusterName": "main",
            "cluster": {"clusterName": "linux", "extraConf": "# a\n# b\n"},
            "nodesets": {"compute": None, "gpu": {"replicas": 0, "features": ["a100"]}, "every": {}},
        }
    )
    assert cluster.name == "main"
    assert cluster.spec.cluster_name == "linux"
    assert set(nodesets) == {"gpu", "every"}
    assert {nodeset.spec.cluster_name for nodeset in nodesets.values()} == {"main"}
    assert nodesets["gpu"].spec.replicas == 0
    assert nodesets["every"].spec.replicas is None


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"nodeSets": {}}, "nodeSets"),
        ({"clusterName": "Main"}, "clusterName"),
        ({"nodesets": {"a_b": {}}}, "a_b"),
        ({"nodesets": {"a": {"clusterName": "other"}}}, "nodesets"),
    ],
)
def test_nonsense_is_refused_by_name(values: dict[str, Any], words: str) -> None:
    with pytest.raises(RenderFailed, match=words):
        render(SLURM_CHART, values)


def of_helm_test(values: dict[str, Any] | None = None) -> dict[str, dict[str, Any]]:
    """What `helm test` creates, by kind."""
    objects = render(SLURM_CHART, values, release="hpc", namespace="slurm", tests=True)
    return {one["kind"]: one for one in objects if "helm.sh/hook" in one["metadata"].get("annotations", {})}


def test_helm_test_runs_a_job_by_a_token_of_its_own() -> None:
    test = {"username": "daemon", "image": "operator:1", "partition": "batch", "timeout": 60}
    grants = [{"usernames": ["nobody"]}]
    values: dict[str, Any] = {"clusterName": "main", "test": test, "cluster": {"auth": {"tokens": grants}}}
    found = of_helm_test(values)
    token, pod = found["Token"], found["Pod"]
    assert errors(token) == []
    assert (token["spec"]["clusterRef"]["name"], token["spec"]["username"]) == ("main", "daemon")
    assert objects_of(values)["Cluster", "main"]["auth"]["tokens"] == [*grants, {"usernames": ["daemon"]}]
    ungranted = objects_of({"test": test})["Cluster", "hpc"]["auth"]["tokens"]
    assert ungranted == [{"usernames": ["nobody"]}, {"usernames": ["daemon"]}]
    assert "hook-succeeded" not in pod["metadata"]["annotations"]["helm.sh/hook-delete-policy"]
    # What mounts the Secret comes after what makes it.
    assert token["metadata"]["annotations"]["helm.sh/hook-weight"] == "-1"
    (volume,) = pod["spec"]["volumes"]
    assert volume["secret"]["secretName"] == token["metadata"]["name"]
    (container,) = pod["spec"]["containers"]
    environment = {one["name"]: one["value"] for one in container["env"]}
    assert environment["SLURMRESTD_URL"] == "http://main-restapi:6820"
    assert (environment["PARTITION"], environment["TIMEOUT"]) == ("batch", "60")
    (program,) = container["args"]
    assert program.strip() == (SLURM_CHART / "files" / "first_job.py").read_text(encoding="utf-8").strip()
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    elsewhere = {"cluster": {"server": "http://there:6820"}, "test": test}
    assert "http://there:6820" in str(of_helm_test(elsewhere)["Pod"])


def test_there_is_no_test_and_no_grant_until_a_user_is_named() -> None:
    assert of_helm_test() == {}
    assert "auth" not in objects_of({})["Cluster", "hpc"]
    with pytest.raises(RenderFailed, match="/test/username"):
        render(SLURM_CHART, {"test": {"username": "nobody"}})


def test_values_of_an_older_release_run_the_test_too() -> None:
    """As with `--reuse-values`, and with a null in a values file."""
    nothing = dict.fromkeys(("image", "imagePullSecrets", "partition", "account", "timeout"))
    pod = of_helm_test({"cluster": None, "test": {"username": "daemon", **nothing}})["Pod"]
    (container,) = pod["spec"]["containers"]
    environment = {one["name"]: one["value"] for one in container["env"]}
    assert environment["SLURMRESTD_URL"] == "http://hpc-restapi:6820"
    assert (environment["TIMEOUT"], environment["PARTITION"], environment["ACCOUNT"]) == ("240", "", "")
    assert container["image"] == "localhost/slinky/slurm-operator:dev"


@pytest.mark.parametrize("part", ["agent", "slurm", "operator"])
def test_a_network_policy_without_a_part_is_refused(part: str) -> None:
    with pytest.raises(RenderFailed, match=f"missing property '{part}'"):
        render(SLURM_CHART, {"networkPolicy": {part: None}})


def test_labels_are_on_every_object_and_do_not_replace_those_of_the_chart() -> None:
    own = {"team": "a", "app.kubernetes.io/name": "mine", "helm.sh/chart": "mine"}
    values = {"labels": own, "test": {"username": "daemon"}, "loginsets": {"front": {}}}
    objects = render(SLURM_CHART, values, release="hpc", namespace="slurm", tests=True)
    assert {one["kind"] for one in objects} >= {"Cluster", "NodeSet", "LoginSet", "NetworkPolicy", "Token", "Pod"}
    for one in objects:
        labels = one["metadata"]["labels"]
        assert labels["team"] == "a", one
        assert "mine" not in labels.values()


EXPORTER: dict[str, Any] = {"metrics": {"exporter": {"enabled": True}}}


def policies(values: dict[str, Any] | None = None) -> dict[str, dict[str, Any]]:
    objects = render(SLURM_CHART, values, release="hpc", namespace="slurm")
    return {obj["metadata"]["name"]: obj["spec"] for obj in objects if obj["kind"] == "NetworkPolicy"}


def ports_of(spec: dict[str, Any]) -> set[int]:
    """TCP ports that pods of no matter whom reach."""
    open_ports: set[int] = set()
    for rule in spec["ingress"]:
        if "from" not in rule:
            for one in rule["ports"]:
                if one.get("protocol", "TCP") == "TCP":
                    open_ports |= set(range(one["port"], one.get("endPort", one["port"]) + 1))
    return open_ports


def test_only_the_agent_is_closed_by_default() -> None:
    found = policies()
    assert set(found) == {"hpc-controller"}
    assert ports_of(found["hpc-controller"]) == set(range(1, 65536)) - {naming.AGENT_PORT}
    assert policies({"networkPolicy": {"agent": {"enabled": False}}}) == {}
    assert policies({"cluster": {"server": "http://there:6820"}}) == {}


def test_ports_of_slurm_are_open_to_those_who_need_them() -> None:
    login, portal = {"podSelector": {"matchLabels": {"a": "login"}}}, {"podSelector": {"matchLabels": {"a": "portal"}}}
    values: dict[str, Any] = {
        "networkPolicy": {"slurm": {"enabled": True, "clients": [login], "restClients": [portal]}}
    }
    found = policies(values)
    assert set(found) == {"hpc-controller", "hpc-slurmd", "hpc-restapi"}
    by_label = {"matchLabels": {"cluster.slinky.slurm.net/operator": "true"}}
    operator = {"namespaceSelector": {}, "podSelector": by_label}
    own = {"podSelector": {"matchLabels": {labels.LABEL_CLUSTER_NAME: "hpc"}}}
    assert found["hpc-controller"]["ingress"] == [
        {"ports": [{"port": naming.AGENT_PORT, "protocol": "TCP"}], "from": [operator]},
        {"ports": [{"port": naming.SLURMCTLD_PORT, "protocol": "TCP"}], "from": [operator, own, login]},
        # Where an srun in slurmctld's pod listens.
        {
            "ports": [
                {"port": 1, "endPort": naming.AGENT_PORT - 1, "protocol": "TCP"},
                {"port": naming.AGENT_PORT + 1, "endPort": 65535, "protocol": "TCP"},
            ],
            "from": [own, login],
        },
    ]
    asks = {"ports": [{"port": naming.SLURMD_PORT, "protocol": "TCP"}], "from": [operator]}
    looks = {"ports": [{"port": naming.JOB_LOGS_PORT, "protocol": "TCP"}], "from": [operator]}
    follower = {"namespaceSelector": {}, "podSelector": {"matchLabels": {labels.LABEL_JOB_LOGS: "true"}}}
    assert found["hpc-slurmd"]["ingress"] == [
        {"from": [own, login]},
        asks,
        looks,
        {"ports": [{"port": naming.JOB_LOGS_PORT, "protocol": "TCP"}], "from": [follower]},
    ]
    values["networkPolicy"]["slurm"]["logClients"] = []
    assert policies(values)["hpc-slurmd"]["ingress"] == [{"from": [own, login]}, asks, looks]
    rest = {"ports": [{"port": naming.SLURMRESTD_PORT, "protocol": "TCP"}]}
    assert found["hpc-restapi"]["ingress"] == [{**rest, "from": [operator, portal]}]
    values["test"] = {"username": "daemon"}
    tested = {"podSelector": {"matchLabels": of_helm_test(values)["Pod"]["metadata"]["labels"]}}
    assert policies(values)["hpc-restapi"]["ingress"] == [{**rest, "from": [operator, tested, portal]}]


@pytest.mark.parametrize(
    ("accounting", "names"),
    [
        ({}, {"hpc-accounting", "hpc-database"}),
        ({"database": {"host": "db"}}, {"hpc-accounting"}),
        ({"external": {"host": "dbd"}}, set()),
    ],
)
def test_slurmdbd_is_open_to_pods_of_the_cluster_and_its_database_to_slurmdbd(
    accounting: dict[str, Any], names: set[str]
) -> None:
    closed = {"slurm": {"enabled": True}}
    found = policies({"cluster": {"accounting": accounting}, "networkPolicy": closed})
    assert set(found) - set(policies({"networkPolicy": closed})) == names
    own = {"podSelector": {"matchLabels": {labels.LABEL_CLUSTER_NAME: "hpc"}}}
    operator = {"matchLabels": {"cluster.slinky.slurm.net/operator": "true"}}
    if "hpc-accounting" in names:
        (rule,) = found["hpc-accounting"]["ingress"]
        assert rule["ports"] == [{"port": naming.SLURMDBD_PORT, "protocol": "TCP"}]
        assert rule["from"] == [{"namespaceSelector": {}, "podSelector": operator}, own]
    if "hpc-database" in names:
        rule, agent = found["hpc-database"]["ingress"]
        assert rule["ports"] == [{"port": naming.MARIADB_PORT, "protocol": "TCP"}]
        assert rule["from"] == [{"podSelector": found["hpc-accounting"]["podSelector"]}]
        assert agent["ports"] == [{"port": naming.AGENT_PORT, "protocol": "TCP"}]
        assert agent["from"] == [{"namespaceSelector": {}, "podSelector": operator}]
    elsewhere = {"server": "http://there:6820", "accounting": accounting}
    assert not names & set(policies({"cluster": elsewhere, "networkPolicy": closed}))


@pytest.mark.parametrize("more", [{}, {"server": "http://there:6820"}])
def test_prometheus_reaches_the_exporter_and_that_reaches_slurmrestd(more: dict[str, Any]) -> None:
    prometheus = {"podSelector": {"matchLabels": {"a": "prometheus"}}}
    policy = {"slurm": {"enabled": True, "clients": [prometheus]}}
    found = policies({"cluster": {**EXPORTER, **more}, "networkPolicy": policy})
    (rule,) = found["hpc-exporter"]["ingress"]
    assert rule["ports"] == [{"port": naming.EXPORTER_PORT, "protocol": "TCP"}]
    assert prometheus in rule["from"]
    selector = found["hpc-exporter"]["podSelector"]
    assert ("hpc-restapi" in found) == (not more)
    assert more or {"podSelector": selector} in found["hpc-restapi"]["ingress"][0]["from"]


def test_a_local_operator_is_admitted_to_what_operators_ask_and_to_nothing_else() -> None:
    values: dict[str, Any] = {"cluster": {"accounting": {}}, "networkPolicy": {"slurm": {"enabled": True}}}
    anywhere = {"ipBlock": {"cidr": "0.0.0.0/0"}}
    assert anywhere not in [peer for spec in policies(values).values() for peer in peers(spec)]
    local = policies({**values, "debug": {"localOperator": True}})
    found = {
        name: {rule["ports"][0]["port"] for rule in spec["ingress"] if anywhere in rule["from"]}
        for name, spec in local.items()
    }
    assert found == {
        "hpc-controller": {naming.AGENT_PORT, naming.SLURMCTLD_PORT},
        "hpc-slurmd": {naming.SLURMD_PORT, 6881},
        "hpc-restapi": {6820},
        "hpc-accounting": {6819},
        "hpc-database": {naming.AGENT_PORT},
    }


def peers(spec: dict[str, Any]) -> list[dict[str, Any]]:
    return [peer for rule in spec["ingress"] for peer in rule["from"]]


def test_policies_select_the_pods_of_the_daemons() -> None:
    cluster, _ = rendered()
    spec = policies({"cluster": EXPORTER, "networkPolicy": {"slurm": {"enabled": True}}})
    pods = {
        "hpc-controller": naming.pod_labels(cluster, naming.COMPONENT_CONTROLLER),
        "hpc-restapi": naming.pod_labels(cluster, naming.COMPONENT_RESTAPI),
        "hpc-slurmd": naming.slurmd_labels(cluster.name),
        "hpc-exporter": naming.pod_labels(cluster, naming.COMPONENT_EXPORTER),
    }
    for name, own in pods.items():
        for other, policy in spec.items():
            assert (policy["podSelector"]["matchLabels"].items() <= own.items()) == (name == other)


@pytest.mark.parametrize(
    "values", [{}, {"nameOverride": "op", "podLabels": {"cluster.slinky.slurm.net/operator": "no"}}]
)
def test_the_operator_of_the_other_chart_is_let_in_wherever_it_runs(values: dict[str, Any]) -> None:
    (deployment,) = [one for one in render(values=values, namespace="elsewhere") if one["kind"] == "Deployment"]
    own = deployment["spec"]["template"]["metadata"]["labels"]
    assert not deployment["spec"]["selector"]["matchLabels"].keys() & {"cluster.slinky.slurm.net/operator"}
    (peer,) = policies()["hpc-controller"]["ingress"][0]["from"]
    assert peer["namespaceSelector"] == {}
    assert peer["podSelector"]["matchLabels"].items() <= own.items()


def test_a_nodeset_of_the_chart_appears_only_where_the_user_names_none() -> None:
    assert set(rendered({"nodesets": {}})[1]) == {"compute"}
    assert set(rendered({"nodesets": {"gpu": {"replicas": 1}}})[1]) == {"gpu"}
    _, named = rendered({"nodesets": {"compute": {"replicas": 7}}})
    assert (named["compute"].spec.replicas, named["compute"].spec.partition.config) == (7, "")
    assert rendered({"nodesets": {"compute": None}})[1] == {}


def test_a_nodeset_that_is_not_enabled_is_left_out() -> None:
    _, nodesets = rendered({"nodesets": {"gpu": {"enabled": False}, "cpu": {"enabled": True, "replicas": 1}}})
    assert set(nodesets) == {"cpu"}
    assert rendered({"nodesets": {"gpu": {"enabled": False}}})[1] == {}


def objects_of(values: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    """The specs of all objects, each of which its CRD takes."""
    objects = render(SLURM_CHART, values, release="hpc", namespace="slurm")
    assert [found for one in objects if one["kind"] in KINDS for found in errors(one)] == []
    return {(one["kind"], one["metadata"]["name"]): one.get("spec", {}) for one in objects}


def test_login_sets_tokens_and_partitions_are_maps() -> None:
    found = objects_of(
        {
            "cluster": {"partitions": [{"name": "all-nodes", "nodeSets": ["ALL"]}]},
            "nodesets": {"gpu": {"replicas": 1}},
            "partitions": {"batch": {"nodeSets": ["gpu"], "config": "Default=YES"}, "old": {"enabled": False}},
            "loginsets": {"front": {"replicas": 3}, "old": {"enabled": False}, "none": None},
            "loginsetDefaults": {"replicas": 1, "image": "registry/login:1"},
            "tokens": {"portal": {"username": "nobody", "lifetime": "15m"}, "old": {"enabled": False}},
        }
    )
    assert found["LoginSet", "front"] == {"clusterName": "hpc", "replicas": 3, "image": "registry/login:1"}
    assert found["Token", "portal"] == {"clusterRef": {"name": "hpc"}, "username": "nobody", "lifetime": "15m"}
    assert found["Cluster", "hpc"]["partitions"] == [
        {"name": "all-nodes", "nodeSets": ["ALL"]},
        {"name": "batch", "nodeSets": ["gpu"], "config": "Default=YES"},
    ]
    assert not [name for kind, name in found if name in {"old", "none"}]


def test_defaults_of_node_sets_are_merged_into_each() -> None:
    found = objects_of(
        {
            "nodesetDefaults": {
                "replicas": 4,
                "features": ["a", "b"],
                "pinToNode": True,
                "weight": 3,
                "template": {"spec": {"nodeSelector": {"pool": "slurm", "zone": "a"}, "priorityClassName": "low"}},
            },
            "nodesets": {
                "plain": {},
                "own": {
                    "replicas": 0,
                    "features": [],
                    "pinToNode": False,
                    "weight": None,
                    "template": {"spec": {"nodeSelector": {"zone": "b"}}},
                },
                "off": None,
            },
        }
    )
    assert found["NodeSet", "plain"]["replicas"] == 4
    assert found["NodeSet", "own"] == {
        "clusterName": "hpc",
        "replicas": 0,
        "features": [],
        "pinToNode": False,
        "template": {"spec": {"nodeSelector": {"pool": "slurm", "zone": "b"}, "priorityClassName": "low"}},
    }
    assert ("NodeSet", "off") not in found
    # What one NodeSet says is not there in the next, nor in the defaults.
    assert found["NodeSet", "plain"]["template"]["spec"]["nodeSelector"] == {"pool": "slurm", "zone": "a"}
    off = objects_of({"nodesetDefaults": {"enabled": False}, "nodesets": {"a": {}, "b": {"enabled": True}}})
    assert [name for kind, name in off if kind == "NodeSet"] == ["b"]
    assert objects_of({"nodesetDefaults": {"image": "i"}})["NodeSet", "compute"]["image"] == "i"


def test_accounting_has_a_value_of_its_own() -> None:
    accounting = {"enabled": True, "extraConf": "a", "database": {"host": "db", "name": "x"}}
    whole: dict[str, Any] = {"accounting": accounting, "cluster": {"accounting": {"database": {"host": "other"}}}}
    assert objects_of(whole)["Cluster", "hpc"]["accounting"] == {
        **accounting,
        "database": {"host": "other", "name": "x"},
    }
    closed = policies({"accounting": accounting, "networkPolicy": {"slurm": {"enabled": True}}})
    assert "hpc-accounting" in closed


def test_a_partition_that_is_there_twice_is_refused() -> None:
    twice = {"cluster": {"partitions": [{"name": "a"}]}, "partitions": {"a": {}}}
    with pytest.raises(RenderFailed, match=r"partitions\.a: cluster\.partitions has a partition of this name already"):
        render(SLURM_CHART, twice)


@pytest.mark.parametrize(
    ("debug", "confinement"),
    [
        ({}, "Constrain"),
        ({"enable": True, "disableCgroups": True}, "None"),
        ({"enable": False, "disableCgroups": True}, "Constrain"),
        ({"enabled": False, "disableCgroups": True}, "Constrain"),
    ],
)
def test_jobs_are_not_confined_where_cgroups_are_disabled(debug: dict[str, Any], confinement: str) -> None:
    found = objects_of({"debug": debug, "nodesets": {"a": {"confinement": "Constrain"}, "b": {}}})
    assert found["NodeSet", "a"]["confinement"] == confinement
    assert "confinement" not in found["NodeSet", "b"]


@pytest.mark.parametrize("disabled", [True, False])
def test_nobody_logs_in_to_nodes_where_cgroups_are_disabled(*, disabled: bool) -> None:
    """The API server refuses `ssh` without confinement."""
    nodesets = {"a": {"confinement": "Constrain", "ssh": {}}}
    found = objects_of({"debug": {"disableCgroups": disabled}, "nodesets": nodesets})["NodeSet", "a"]
    assert ("ssh" in found) is not disabled
    _ = NodeSetSpec.model_validate(found)


def test_objects_beside_the_release() -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "of-{{ .Release.Name }}"}}
    assert ("Secret", "of-hpc") in objects_of({"extraObjects": [secret]})


@pytest.mark.parametrize(
    ("values", "where", "key"),
    [
        ({"partitions": {"a": {"nodeSet": []}}}, "/partitions/a", "nodeSet"),
        ({"loginsets": {"a": {"replicaz": 1}}}, "/loginsets/a", "replicaz"),
        ({"tokens": {"a": {"user": "x"}}}, "/tokens/a", "user"),
        ({"nodesetDefaults": {"replcas": 1}}, "/nodesetDefaults", "replcas"),
        ({"accounting": {"enable": True}}, "/accounting", "enable"),
        ({"cluster": {"controler": {}}}, "/cluster", "controler"),
        ({"cluster": {"controller": {"persistence": {"sise": "1Gi"}}}}, "/cluster/controller/persistence", "sise"),
        ({"cluster": {"partitions": [{"name": "a", "nodesets": []}]}}, "/cluster/partitions/0", "nodesets"),
        ({"nodesets": {"gpu": {"replcas": 1}}}, "/nodesets/gpu", "replcas"),
        ({"nodesets": {"gpu": {"drain": {"timout": "1h"}}}}, "/nodesets/gpu/drain", "timout"),
    ],
)
def test_a_misspelt_field_is_refused_with_its_place(values: dict[str, Any], where: str, key: str) -> None:
    with pytest.raises(RenderFailed, match=rf"at '{where}': additional properties '{key}' not allowed"):
        render(SLURM_CHART, values)


@pytest.mark.parametrize(
    "values",
    [
        {"cluster": {"controller": {"persistence": {"size": "10Gi"}, "template": {"spec": {"any": 1}}}}},
        {"nodesets": {"gpu": {"updateStrategy": {"rollingUpdate": {"maxUnavailable": "20%"}}}}},
        {"nodesets": {"gpu": {"updateStrategy": {"rollingUpdate": {"maxUnavailable": 2}}, "replicas": None}}},
        {"nodesets": {"gpu": {"volumeClaimTemplates": [{"metadata": {"name": "a"}, "spec": {}}]}}},
    ],
)
def test_what_the_kinds_have_is_accepted(values: dict[str, Any]) -> None:
    assert rendered(values)


@pytest.mark.parametrize("name", ["on", "y", "true", "null", "1e3"])
def test_names_that_yaml_takes_for_something_else_stay_names(name: str) -> None:
    for chart in (SLURM_CHART, OPERATOR_CHART, EXPORTER_CHART, *JOBS_CHARTS):
        values: dict[str, Any] = (
            {"server": "http://a:6820", "tokenSecret": {"name": "a"}} if chart == EXPORTER_CHART else {}
        )
        if chart == SLURM_CHART:
            values = {"nodesets": {"off": {}}, "clusterName": "no", "networkPolicy": {"slurm": {"enabled": True}}}
        if chart == OPERATOR_CHART:
            values = {"fullnameOverride": "off", "nameOverride": "yes", "replicas": 2}
        for obj in render(chart, values, release=name, namespace="yes"):
            texts = [obj["metadata"]["name"], obj["metadata"].get("namespace", "yes")]
            texts += obj["metadata"]["labels"].values()
            assert all(isinstance(text, str) for text in texts), obj["metadata"]
            selectors = [obj.get("spec", {}).get(one, {}) for one in ("selector", "podSelector")]
            assert all(isinstance(text, str) for one in selectors for text in one.get("matchLabels", one).values())
