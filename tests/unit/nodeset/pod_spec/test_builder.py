"""The slurmd pod: what is generated, what a user's template changes, and what it may not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from slinky_api import labels
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_operator.cluster.parts.slurmctld import manifests as slurmctld
from slinky_operator.cluster.parts.slurmrestd import manifests as slurmrestd
from slinky_operator.nodeset.model import check_tables
from slinky_operator.nodeset.model.kubernetes_nodes import KubernetesNode, Taint
from slinky_operator.nodeset.model.pods import pod_facts, scheduling
from slinky_operator.nodeset.model.pods.pod_names import PodSlot
from slinky_operator.nodeset.model.revisions import revision
from slinky_operator.nodeset.pod_spec import builder, generated
from slinky_operator.nodeset.pod_spec.validation import RefusedTemplate
from slinky_operator.slurm import naming
from slinky_operator.slurm.health_checks import programs
from slinky_operator.slurm.pod_templates import confinement, first_process
from slinky_operator.slurm.pods import pod_ownership
from slinky_operator.slurm.slurmd import node_conf

DEFAULTS = generated.Defaults(image="slurmd:26.05", image_pull_policy="Never")
SAMPLES = Path(__file__).parents[4] / "config" / "samples"


def cluster(**spec: Any) -> Cluster:
    return Cluster.parse({"metadata": {"name": "c", "namespace": "ns", "uid": "cu"}, "spec": spec})


def nodeset(**spec: Any) -> NodeSet:
    metadata = {"name": "a", "namespace": "ns", "uid": "12345678-9"}
    return NodeSet.parse({"metadata": metadata, "spec": {"clusterName": "c", "replicas": 1, **spec}})


def build(spec: dict[str, Any] | None = None, *, of: Cluster | None = None) -> dict[str, Any]:
    return builder.build(
        nodeset(**(spec or {})),
        of or cluster(),
        place=PodSlot("a-3", "a-3", 3),
        revision="r1",
        guard_uid="gu",
        defaults=DEFAULTS,
    )


def test_pods_of_one_stencil_differ_by_their_places_alone() -> None:
    claim = {"metadata": {"name": "scratch"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
    owner = nodeset(volumeClaimTemplates=[claim], template={"spec": {"containers": [{"name": "log", "image": "l"}]}})
    stencil = builder.PodBuilder(owner, cluster(), revision="r1", guard_uid="gu", defaults=DEFAULTS)
    places = [PodSlot("a-3", "a-3", 3), PodSlot("a-4", "a-4", 4, host="h"), PodSlot("a-n1", "n1", host="n1")]

    made = [stencil.pod(place) for place in places]

    assert made == [
        builder.build(owner, cluster(), place=place, revision="r1", guard_uid="gu", defaults=DEFAULTS)
        for place in places
    ]
    assert [argument(one, "-N") for one in made] == ["a-3", "a-4", "n1"]
    assert [one["spec"]["volumes"][-1]["persistentVolumeClaim"]["claimName"] for one in made] == [
        "scratch-a-3",
        "scratch-a-4",
        "scratch-a-n1",
    ]
    assert "affinity" not in made[0]["spec"]


def argument(made: dict[str, Any], flag: str) -> str:
    arguments: list[str] = made["spec"]["containers"][0]["args"]
    assert arguments.count(flag) == 1
    return arguments[arguments.index(flag) + 1]


def test_a_pod_registers_as_itself() -> None:
    made = build({"features": ["gpu"], "weight": 7, "gres": "gpu:2"})

    assert made["metadata"]["name"] == made["spec"]["hostname"] == "a-3"
    assert made["spec"]["containers"][0]["command"] == list(first_process.above("slurmd"))
    assert argument(made, "-N") == "a-3"
    assert argument(made, "--instance-id") == "$(POD_UID)"
    assert argument(made, "--extra") == "ns/a"
    assert argument(made, "--conf-server") == "c-controller-0.c-controller.ns.svc:6817"
    assert argument(made, "--conf") == "Features=a,gpu CPUs=1 RealMemory=512 Weight=7 Gres=gpu:2"


def test_a_pod_and_its_node_may_have_different_names() -> None:
    made = builder.build(
        nodeset(), cluster(), place=PodSlot("a-machine", "machine"), revision="r", guard_uid="g", defaults=DEFAULTS
    )

    assert made["metadata"]["name"] == "a-machine"
    assert made["spec"]["hostname"] == argument(made, "-N") == "machine"
    assert made["metadata"]["labels"][labels.LABEL_POD_NAME] == "a-machine"
    assert made["metadata"]["labels"][labels.LABEL_POD_HOSTNAME] == "machine"
    assert labels.LABEL_POD_INDEX not in made["metadata"]["labels"]
    read = pod_facts.read({**made, "metadata": {**made["metadata"], "uid": "u"}}, "a")
    assert (read.name, read.node_name, read.ordinal) == ("a-machine", "machine", None)


def test_a_pod_has_few_rights_and_one_key() -> None:
    made = build()

    context = made["spec"]["containers"][0]["securityContext"]
    assert context["allowPrivilegeEscalation"] is False
    assert context["capabilities"]["drop"] == ["ALL"]
    assert set(context["capabilities"]["add"]) == {"CHOWN", "SETUID", "SETGID", "DAC_OVERRIDE", "FOWNER", "KILL"}
    secrets = [volume["secret"] for volume in made["spec"]["volumes"] if "secret" in volume]
    assert [(one["secretName"], one["defaultMode"], one["items"]) for one in secrets] == [
        ("c-auth-slurm", 0o400, [{"key": "slurm.key", "path": "slurm.key"}])
    ]
    assert made["spec"]["automountServiceAccountToken"] is False


def test_a_pod_has_two_owners_and_is_found_by_uid() -> None:
    made = build()

    owners = made["metadata"]["ownerReferences"]
    assert [(one["kind"], one["uid"], one.get("controller", False)) for one in owners] == [
        ("NodeSet", "12345678-9", True),
        ("ConfigMap", "gu", False),
    ]
    assert made["metadata"]["labels"][labels.LABEL_NODESET_UID] == "12345678-9"
    assert made["metadata"]["labels"][labels.LABEL_REVISION] == "r1"
    assert made["spec"]["topologySpreadConstraints"][0]["whenUnsatisfiable"] == "ScheduleAnyway"


def test_no_pod_is_evicted_because_its_node_is_out_of_reach() -> None:
    own = {"key": "gpu", "operator": "Exists"}

    tolerations = build({"template": {"spec": {"tolerations": [own]}}})["spec"]["tolerations"]

    assert [one["key"] for one in tolerations] == [
        "gpu",
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
    ]
    assert all("tolerationSeconds" not in one for one in tolerations)


def test_a_pod_of_one_node_is_left_there_by_kubernetes_whatever_the_taint() -> None:
    place = PodSlot("a-machine", "machine", host="machine")

    made = builder.build(nodeset(), cluster(), place=place, revision="r", guard_uid="g", defaults=DEFAULTS)

    # It is drained by us instead: what the template does not tolerate is no place for a pod.
    assert {"operator": "Exists", "effect": "NoExecute"} in made["spec"]["tolerations"]
    assert scheduling.fit({}, KubernetesNode("machine", taints=(Taint("gpu", "", "NoExecute"),))) is scheduling.Fit.NO


def test_resources_decide_what_the_node_offers() -> None:
    made = build({"resources": {"requests": {"cpu": "250m"}, "limits": {"cpu": "3500m", "memory": "2Gi"}}})

    assert argument(made, "--conf") == "Features=a CPUs=3 RealMemory=2048"


def test_a_fragment_is_merged_by_container() -> None:
    made = build(
        {
            "template": {
                "metadata": {"labels": {"team": "x"}, "annotations": {"note": "y"}},
                "spec": {
                    "containers": [
                        {"name": "slurmd", "image": "mine", "env": [{"name": "A", "value": "1"}]},
                        {"name": "exporter", "image": "other"},
                    ],
                    "tolerations": [{"operator": "Exists"}],
                },
            }
        }
    )

    first, second = made["spec"]["containers"]
    assert (first["image"], second["name"]) == ("mine", "exporter")
    assert [variable["name"] for variable in first["env"]] == ["POD_NAME", "POD_UID", "A"]
    assert made["metadata"]["labels"]["team"] == "x"
    assert made["metadata"]["annotations"]["note"] == "y"
    assert argument(made, "--extra") == "ns/a"


def test_a_whole_template_keeps_its_arguments_and_gets_an_identity() -> None:
    documents = list(yaml.safe_load_all((SAMPLES / "slinky" / "0.1.yaml").read_text()))
    legacy = next(one for one in documents if one["kind"] == "Cluster")
    owner = next(one for one in documents if one["kind"] == "NodeSet")
    for one in (legacy, owner):
        one["metadata"] |= {"namespace": "ns", "uid": "u-12345678"}

    made = builder.build(
        NodeSet.parse(owner),
        Cluster.parse(legacy),
        place=PodSlot("legacy-compute-0", "legacy-compute-0", 0),
        revision="r",
        guard_uid="g",
        defaults=DEFAULTS,
    )

    container = made["spec"]["containers"][0]
    assert container["command"] == list(first_process.above("slurmd"))
    assert container["args"][:3] == ["-Z", "--conf-server", "legacy-controller:6817"]
    assert argument(made, "-N") == "legacy-compute-0"
    assert argument(made, "--conf") == "Features=legacy-compute,compute CPUs=1 RealMemory=1024 Weight=1"
    assert container["securityContext"]["privileged"] is True
    # The API server refuses the two beside each other.
    assert "allowPrivilegeEscalation" not in container["securityContext"]
    assert made["metadata"]["labels"]["app.kubernetes.io/instance"] == "legacy"


@pytest.mark.parametrize(
    ("template", "field"),
    [
        ({"spec": {"containers": [{"name": "slurmd", "args": ["-Nother"]}]}}, "spec.containers[0].args[0]"),
        ({"spec": {"containers": [{"name": "slurmd", "args": ["-Z", "--extra=x"]}]}}, "spec.containers[0].args[1]"),
        (
            {"spec": {"containers": [{"name": "slurmd", "env": [{"name": "POD_UID", "value": "x"}]}]}},
            "spec.containers[0].env[0]",
        ),
        ({"spec": {"containers": [{"name": "other"}]}}, "spec.containers[0].image"),
        ({"spec": {"subdomain": "x"}}, "spec.subdomain"),
        ({"spec": {"containers": [{"name": "slurmd", "$patch": "delete"}]}}, "spec.containers"),
        ({"spec": {"$patch": "replace", "tolerations": []}}, "spec.containers"),
        ({"spec": {"containers": [{"image": "x"}]}}, "spec.containers[0]"),
        ({"spec": {"volumes": [{"name": "x", "$patch": "merge"}]}}, "spec.volumes[0].$patch"),
        ({"spec": {"restartPolicy": "Never"}}, "spec.restartPolicy"),
        ({"metadata": {"labels": {labels.LABEL_NODESET_UID: "x"}}}, f"metadata.labels[{labels.LABEL_NODESET_UID}]"),
        ({"metadata": {"labels": {labels.LABEL_DAEMON: "x"}}}, f"metadata.labels[{labels.LABEL_DAEMON}]"),
        (
            {"metadata": {"labels": {naming.POD_NAME_LABEL: "slurm-controller-0"}}},
            f"metadata.labels[{naming.POD_NAME_LABEL}]",
        ),
    ],
)
def test_what_breaks_identity_is_refused_by_field(template: dict[str, Any], field: str) -> None:
    with pytest.raises(RefusedTemplate) as caught:
        build({"template": template})

    assert [problem.field for problem in caught.value.problems] == [f"spec.template.{field}"]


@pytest.mark.parametrize(
    ("container", "field"),
    [
        ({"command": ["slurmd"]}, "command"),
        ({"args": ["-vv", "--conf-server=x:1"]}, "args[1]"),
        ({"args": ["-f", "x"]}, "args[0]"),
        ({"securityContext": {"privileged": True}}, "securityContext.privileged"),
    ],
)
def test_what_confinement_decides_cannot_be_in_a_template(container: dict[str, Any], field: str) -> None:
    template = {"spec": {"containers": [{"name": "slurmd", **container}]}}
    with pytest.raises(RefusedTemplate) as caught:
        build({"template": template, "confinement": "Constrain"})
    assert [one.field for one in caught.value.problems] == [f"spec.template.spec.containers[0].{field}"]
    assert "confinement" in caught.value.problems[0].reason


def test_a_key_of_the_users_is_mounted_once_it_is_accepted_and_replaces_no_pod() -> None:
    given = {"auth": {"slurmKeyRef": {"name": "site", "key": "site.jwks"}}}
    made = build(of=cluster(**given))
    (volume,) = (one for one in made["spec"]["volumes"] if one["name"] == generated.KEY_VOLUME)
    assert volume["secret"]["secretName"] == "c-auth-accepted"
    assert volume["secret"]["items"] == [{"key": "slurm.jwks", "path": "slurm.jwks"}]
    assert revision.of(nodeset(), cluster(**given)) == revision.of(nodeset(), cluster())
    there = {"server": "http://there:6820", "token": {"secretRef": "t"}, "controller": {"external": {"host": "there"}}}
    assert "'site'" in str(build(of=cluster(**there, **given))["spec"]["volumes"])


def test_confinement_needs_a_cluster_that_the_operator_runs() -> None:
    elsewhere = cluster(
        server="http://there:6820",
        token={"secretRef": {"name": "t"}},
        auth={"slurmKeyRef": {"name": "k"}},
        controller={"external": {"host": "there"}},
    )
    with pytest.raises(RefusedTemplate) as caught:
        build({"confinement": "Constrain"}, of=elsewhere)
    assert [one.field for one in caught.value.problems] == ["spec.confinement"]


def test_a_confined_slurmd_has_files_of_its_own_and_a_first_process() -> None:
    made = build(
        {"confinement": "Constrain", "template": {"spec": {"containers": [{"name": "slurmd", "args": ["-v"]}]}}}
    )
    (container,) = made["spec"]["containers"]
    assert container["command"] == list(confinement.COMMAND)
    assert container["args"][:5] == ["-v", "-D", "-Z", "-N", "a-3"]
    assert argument(made, "-f") == "/run/slurm/conf/slurm.conf"
    assert "--conf-server" not in container["args"]
    assert {"name": "SLURM_SACK_KEY", "value": "/etc/slurm/slurm.key"} in container["env"]
    assert container["securityContext"] == confinement.security_context()
    mounted = next(one["name"] for one in container["volumeMounts"] if one["mountPath"] == confinement.GIVEN_FOLDER)
    volume = next(one for one in made["spec"]["volumes"] if one["name"] == mounted)
    assert volume["configMap"]["name"] == naming.config("c")


def test_a_slurmd_that_is_not_confined_is_made_as_before() -> None:
    assert build({"confinement": "None"}) == build()
    assert (
        revision.of(nodeset(confinement="None"))
        == revision.of(nodeset())
        != revision.of(nodeset(confinement="Constrain"))
    )


def test_labels_with_the_value_that_the_operator_writes_may_be_there() -> None:
    # The chart of Slinky 0.3 writes the first of them into the selector and the template of each NodeSet.
    own = {labels.LABEL_NODESET_NAME: "a", labels.LABEL_DAEMON: "slurmd", labels.LABEL_NODESET_UID: "12345678-9"}
    spec = {"selector": {"matchLabels": own}, "template": {"metadata": {"labels": {**own, "team": "x"}}}}

    assert build(spec)["metadata"]["labels"] == {**build()["metadata"]["labels"], "team": "x"}


@pytest.mark.parametrize(
    ("label", "value", "words"),
    [
        (labels.LABEL_NODESET_NAME, "b", "and may only be a"),
        (labels.LABEL_NODESET_NAME, "", "and may only be a"),
        (labels.LABEL_REVISION, "r1", "whose a pod is"),
        (labels.LABEL_POD_INDEX, "3", "whose a pod is"),
        (labels.NODESET_PREFIX + "mine", "x", "whose a pod is"),
    ],
)
def test_with_another_value_they_are_refused_and_so_are_those_of_one_pod(label: str, value: str, words: str) -> None:
    for spec in ({"selector": {"matchLabels": {label: value}}}, {"template": {"metadata": {"labels": {label: value}}}}):
        with pytest.raises(RefusedTemplate, match=words):
            build(spec)


def test_an_entrypoint_that_withholds_from_the_node_is_told_of_no_limits() -> None:
    env = [{"name": "POD_CPUS", "value": "4"}, {"name": "POD_MEMORY", "value": "1024"}, {"name": "MINE", "value": "1"}]
    container = {"name": "slurmd", "command": ["entrypoint.sh"], "args": ["-Z", "--conf", "'Weight=2'"], "env": env}

    (made,) = build({"template": {"spec": {"containers": [container]}}})["spec"]["containers"]

    values = {one["name"]: one["value"] for one in made["env"] if "value" in one}
    assert values == {"POD_CPUS": "0", "POD_MEMORY": "0", "MINE": "1"}
    assert made["command"] == list(first_process.before(["entrypoint.sh"]))
    assert made["args"][-1] == "'Features=a Weight=2'"


def test_a_label_of_the_operators_is_refused_in_the_selector_too() -> None:
    with pytest.raises(RefusedTemplate) as caught:
        build({"selector": {"matchLabels": {labels.LABEL_DAEMON: "slurmrestd"}}})

    assert [problem.field for problem in caught.value.problems] == [f"spec.selector.matchLabels[{labels.LABEL_DAEMON}]"]


def test_no_label_that_a_template_may_set_makes_its_pods_endpoints_of_a_daemon() -> None:
    for component in (naming.COMPONENT_CONTROLLER, naming.COMPONENT_RESTAPI, naming.COMPONENT_PREFLIGHT):
        of = cluster()
        wished = {
            key: value
            for key, value in naming.pod_labels(of, component).items()
            if not key.startswith(pod_ownership.OWN_PREFIXES)
        }
        made = build({"template": {"metadata": {"labels": wished}}}, of=of)["metadata"]["labels"]
        assert wished.items() <= made.items()
        for body in (slurmctld.service(of), slurmrestd.service(of)):
            assert not body["spec"]["selector"].items() <= made.items()


def test_a_cluster_elsewhere_must_say_where_its_slurmctld_is() -> None:
    elsewhere = cluster(server="http://rest:6820", token={"secretRef": "t"})

    with pytest.raises(RefusedTemplate):
        build(of=elsewhere)


@pytest.mark.parametrize(
    ("text", "number"), [("500m", 1), ("1", 1), ("2500m", 2), ("2e3m", 2), (4, 4), ("0.5", 1), ("64", 64)]
)
def test_cpus_are_whole(text: object, number: int) -> None:
    assert node_conf.cpus({"limits": {"cpu": text}}) == number


@pytest.mark.parametrize(
    ("text", "number"), [("1Gi", 1024), ("1000M", 953), ("512Mi", 512), ("1024Ki", 1), (1048576, 1), ("1G", 953)]
)
def test_memory_is_in_mib(text: object, number: int) -> None:
    assert node_conf.memory_mib({"requests": {"memory": text}}) == number


@pytest.mark.parametrize("text", ["", "x", "1 Gi", "1i", "--1"])
def test_what_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(node_conf.InvalidQuantity):
        node_conf.quantity(text)


@pytest.mark.parametrize("quote", ["'", '"'])
def test_quotes_around_extra_conf_are_taken_off_or_refused(quote: str) -> None:
    made = build({"extraConf": f"{quote}Weight=2 MemSpecLimit=64{quote}"})
    assert argument(made, "--conf") == "Features=a CPUs=1 RealMemory=512 Weight=2 MemSpecLimit=64"

    with pytest.raises(RefusedTemplate, match=r"spec\.extraConf: begins with .* and is not quoted as a whole"):
        build({"extraConf": f"{quote}Weight=2"})


def test_extra_conf_wins_and_adds_features() -> None:
    owner = nodeset(extraConf="cpus=2 MemSpecLimit=64 Features=big")

    assert node_conf.node_line(owner, {}) == "Features=a,big CPUs=2 RealMemory=512 MemSpecLimit=64"


@pytest.mark.parametrize(
    ("args", "spec", "line"),
    [
        # Slinky's charts write all of slurmd's arguments: what they do not limit is the machine's.
        (["-Z", "--conf", "'Features=debug'"], {}, "Features=a,debug"),
        (["-Z"], {"resources": {"limits": {"cpu": 2}}}, "Features=a CPUs=2"),
        (["-Z"], {"resources": {"requests": {"memory": "1Gi"}}}, "Features=a RealMemory=1024"),
        (["-Z", "--conf", "CPUs=3"], {}, "Features=a CPUs=3"),
        # A few options more are no such command line.
        (["-vv"], {}, "Features=a CPUs=1 RealMemory=512"),
        ([], {}, "Features=a CPUs=1 RealMemory=512"),
    ],
)
def test_a_whole_command_line_without_limits_offers_the_machine(
    args: list[str], spec: dict[str, Any], line: str
) -> None:
    made = build({"template": {"spec": {"containers": [{"name": "slurmd", "args": args}]}}, **spec})

    assert argument(made, "--conf") == line


def test_jobs_find_other_nodes_by_their_short_names() -> None:
    def searches(spec: dict[str, Any], domain: str) -> list[str]:
        owner = nodeset(**spec)
        defaults = generated.Defaults(image="slurmd", domain=domain)
        made = builder.build(
            owner, cluster(), place=PodSlot("a-3", "a-3", 3), revision="r", guard_uid="g", defaults=defaults
        )
        found: list[str] = (made["spec"].get("dnsConfig") or {}).get("searches", [])
        return found

    own = "c-nodes.ns.svc.k8s.corp"
    template = {"spec": {"dnsConfig": {"searches": ["mine", own]}}}
    assert searches({}, "k8s.corp") == [own]
    assert searches({}, "") == []
    assert searches({"serviceName": "theirs"}, "k8s.corp") == ["theirs.ns.svc.k8s.corp", own]
    assert searches({"template": template}, "k8s.corp") == ["mine", own]


def test_a_pod_belongs_to_the_service_that_the_spec_names() -> None:
    assert build()["spec"]["subdomain"] == "c-nodes"
    assert build({"serviceName": "theirs"})["spec"]["subdomain"] == "theirs"


def test_checks_are_mounted_where_slurmd_runs_and_need_no_pod_to_change() -> None:
    health = {"checks": [{"name": "disk", "use": "Disk"}]}
    spec = build({"health": health})["spec"]

    (volume,) = [one for one in spec["volumes"] if one["name"] == generated.CHECKS_VOLUME]
    name = check_tables.name(nodeset())
    assert volume["configMap"] == {"name": name, "defaultMode": 0o500, "optional": True}
    mount = {"name": generated.CHECKS_VOLUME, "mountPath": programs.GIVEN_FOLDER, "readOnly": True}
    assert mount in spec["containers"][0]["volumeMounts"]
    assert build({"health": {"checks": [{"name": "gpu", "use": "GPU"}], "maxUnhealthy": 3}})["spec"] == spec
    assert build({"health": {"defaults": True}}) == build()


def test_checks_need_a_slurm_conf_of_the_operators() -> None:
    elsewhere = cluster(
        server="http://there:6820",
        token={"secretRef": {"name": "t"}},
        auth={"slurmKeyRef": {"name": "k"}},
        controller={"external": {"host": "there"}},
    )
    with pytest.raises(RefusedTemplate) as caught:
        build({"health": {"checks": [{"name": "disk", "use": "Disk"}]}}, of=elsewhere)
    assert [one.field for one in caught.value.problems] == ["spec.health.checks"]
    build({"health": {"defaults": True}}, of=elsewhere)
