"""The slurmd pod: generated, with the user's template merged over it.

The user's word wins, except where the node's identity hangs on it: host name and arguments tie pod, Slurm node and
NodeSet together, and a pod that registers as something else could not be drained. Such fields are refused by name.

A whole template, as manifests of Slinky 0.1 have it, brings arguments of its own; they are kept, and what makes the
identity is added to them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from typing_extensions import override

from slinky_api import labels
from slinky_api.v1alpha1.cluster import Cluster
from slinky_api.v1alpha1.nodeset import NodeSet
from slinky_operator.kube.resources import PODS
from slinky_operator.nodeset import claims, conf, guard, identity, matching
from slinky_operator.nodeset.facts import SLURMD
from slinky_operator.nodeset.places import Place
from slinky_operator.slurm import naming, security
from slinky_operator.slurm.templates import POD_SPEC, RefusedFragment, merge

GRACE_SECONDS: Final = 30
"""Between SIGTERM and SIGKILL. The operator deletes pods whose nodes are empty; slurmd then ends at once."""

COMPONENT: Final = "worker"
CONF_FOLDER: Final = naming.CONF_FOLDER
KEY_VOLUME: Final = "slurm-key"
RUN_VOLUME: Final = "run"
SPOOL_VOLUME: Final = "slurm-spool"

_OWN_ARGUMENTS: Final = frozenset({"-N", "--instance-id", "--extra"})
_OWN_ENVIRONMENT: Final = frozenset({"POD_NAME", "POD_UID"})
_OWN_PREFIXES: Final = (labels.NODESET_PREFIX, labels.CLUSTER_PREFIX)
_OWN_LABELS: Final = frozenset({labels.LABEL_REVISION})
_REFUSED_SPEC: Final = ("subdomain", "nodeName")


@dataclass(frozen=True, slots=True)
class Problem:
    """A field that keeps pods from being made, and why."""

    field: str
    reason: str

    @override
    def __str__(self) -> str:
        return f"{self.field}: {self.reason}"


class RefusedTemplate(ValueError):
    """No pod can be made from this NodeSet; carries all fields that are in the way."""

    def __init__(self, nodeset: NodeSet, problems: Sequence[Problem]) -> None:
        self.nodeset = nodeset
        self.problems = tuple(problems)
        super().__init__(f"NodeSet {nodeset.namespace}/{nodeset.name}: {'; '.join(map(str, problems))}")


@dataclass(frozen=True, slots=True)
class Defaults:
    """What the operator's settings give where a NodeSet says nothing."""

    image: str
    image_pull_policy: str = ""
    domain: str = ""
    """DNS domain of the Kubernetes cluster; empty if it is not known."""


def build(
    nodeset: NodeSet, cluster: Cluster, *, place: Place, revision: str, guard_uid: str, defaults: Defaults
) -> dict[str, Any]:
    """Make the pod for a place.

    Parameters
    ----------
    nodeset, cluster
        What it belongs to.
    place
        What the pod and its node are called.
    revision
        Hash of the spec, for its label.
    guard_uid
        Uid of the second owner.
    defaults
        The operator's.

    Raises
    ------
    RefusedTemplate
        If the template would break the node's identity, or lacks something that no default replaces.
    """
    problems = list(check(nodeset, cluster))
    if problems:
        raise RefusedTemplate(nodeset, problems)
    template = nodeset.spec.template or {}
    # Slinky named nodes after a template's host name; here they are named after the NodeSet or the Node.
    fragment: dict[str, Any] = {key: value for key, value in (template.get("spec") or {}).items() if key != "hostname"}
    pod_spec = merge(_spec(nodeset, cluster, place, defaults), fragment, POD_SPEC)
    own_claims = claims.volumes(nodeset, place.pod)
    replaced = {volume["name"] for volume in own_claims}
    pod_spec["volumes"] = [*(one for one in pod_spec["volumes"] if one.get("name") not in replaced), *own_claims]
    pod_spec["hostname"] = place.node
    if place.host and place.ordinal is None:
        _pin(pod_spec, place.host)
    elif place.host:
        _return_to(pod_spec, place.host)
    pod_spec["subdomain"] = nodeset.spec.service_name or naming.node_service(cluster.name)
    _search(pod_spec, nodeset, cluster, defaults.domain)
    container = next(item for item in pod_spec["containers"] if item["name"] == SLURMD)
    own: Mapping[str, Any] = next((item for item in fragment.get("containers") or () if item.get("name") == SLURMD), {})
    context = container.get("securityContext") or {}
    container["securityContext"] = security.agreeing(context, own.get("securityContext") or {})
    container["args"] = _arguments(nodeset, cluster, place, own, container)
    if "command" not in own and "args" not in own:
        container["command"] = ["slurmd"]
    metadata = template.get("metadata") or {}
    return {
        "apiVersion": PODS.api_version,
        "kind": PODS.kind,
        "metadata": {
            "name": place.pod,
            "namespace": nodeset.namespace,
            "labels": {**(metadata.get("labels") or {}), **_labels(nodeset, cluster, place, revision)},
            "annotations": {
                "kubectl.kubernetes.io/default-container": SLURMD,
                **(metadata.get("annotations") or {}),
            },
            "ownerReferences": guard.owners(nodeset, guard_uid),
        },
        "spec": pod_spec,
    }


def _pin(pod_spec: dict[str, Any], host: str) -> None:
    """Make a pod one of one Node. Its own terms have been found to hold there; a later change is ours to see."""
    affinity = pod_spec.get("affinity") or {}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": matching.affinity_to(host)}
    pod_spec["affinity"] = {**affinity, "nodeAffinity": {**(affinity.get("nodeAffinity") or {}), **required}}
    given = list(pod_spec.get("tolerations") or ())
    pod_spec["tolerations"] = [*given, *(dict(one) for one in matching.TOLERATIONS if dict(one) not in given)]


def _return_to(pod_spec: dict[str, Any], host: str) -> None:
    """Let a pod go to one Node only; what its own terms ask for must hold there as well, or it waits."""
    affinity = pod_spec.get("affinity") or {}
    of_node = affinity.get("nodeAffinity") or {}
    pin = matching.affinity_to(host)["nodeSelectorTerms"][0]["matchFields"]
    terms = [dict(term) for term in matching.required_terms(pod_spec) or ()] or [{}]
    both = [{**term, "matchFields": [*(term.get("matchFields") or ()), *pin]} for term in terms]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": both}}
    pod_spec["affinity"] = {**affinity, "nodeAffinity": {**of_node, **required}}


def check(nodeset: NodeSet, cluster: Cluster) -> Iterable[Problem]:  # noqa: C901 - one field after the other
    """All fields of the NodeSet that keep its pods from being made; none if they can be."""
    template = nodeset.spec.template or {}
    spec = template.get("spec") or {}
    where = "spec.template.spec"
    for field in _REFUSED_SPEC:
        if spec.get(field):
            yield Problem(f"{where}.{field}", "is the operator's: it decides which node the pod is to Slurm")
    if spec.get("restartPolicy") not in {None, "Always"}:
        yield Problem(f"{where}.restartPolicy", "must be Always: a slurmd that ended comes back under the same name")
    for label in (template.get("metadata") or {}).get("labels") or {}:
        if label.startswith(_OWN_PREFIXES) or label in _OWN_LABELS:
            yield Problem(f"spec.template.metadata.labels[{label}]", "is the operator's")
    try:
        merged = merge(_spec(nodeset, cluster, Place("", ""), Defaults("")), spec, POD_SPEC)
    except RefusedFragment as error:
        yield Problem(f"{where}.{error.field}", error.reason)
        return
    if not any(item.get("name") == SLURMD for item in merged.get("containers") or ()):
        yield Problem(f"{where}.containers", f"lacks {SLURMD}, which is what the pod is for")
        return
    containers = [item for item in spec.get("containers") or () if "$patch" not in item]
    yield from _check_containers(containers, where)
    if naming.conf_server(cluster) is None and not _own_conf_server(containers):
        yield Problem(
            "spec.template", "must be a whole one, with --conf-server, or the Cluster must say controller.external"
        )
    for field, reason in claims.check(nodeset, {KEY_VOLUME}):
        yield Problem(field, reason)
    try:
        conf.node_line(nodeset, _resources(nodeset, containers))
    except conf.InvalidQuantity as error:
        yield Problem("spec.resources", str(error))


def _check_containers(containers: Iterable[Mapping[str, Any]], where: str) -> Iterable[Problem]:
    for place, container in enumerate(containers):
        at = f"{where}.containers[{place}]"
        if container.get("name") == SLURMD:
            yield from _check_slurmd(container, at)
        elif not container.get("image"):
            yield Problem(f"{at}.image", "is missing")


def _check_slurmd(container: Mapping[str, Any], at: str) -> Iterable[Problem]:
    for place, argument in enumerate(container.get("args") or ()):
        word = str(argument)
        if word.split("=", 1)[0] in _OWN_ARGUMENTS or (word.startswith("-N") and not word.startswith("--")):
            yield Problem(f"{at}.args[{place}]", f"{word.split('=', 1)[0]} is the operator's: it names the node")
    for place, variable in enumerate(container.get("env") or ()):
        if variable.get("name") in _OWN_ENVIRONMENT:
            yield Problem(f"{at}.env[{place}]", f"{variable['name']} is the operator's: it names the node")


def _spec(nodeset: NodeSet, cluster: Cluster, place: Place, defaults: Defaults) -> dict[str, Any]:
    container: dict[str, Any] = {
        "name": SLURMD,
        "image": nodeset.spec.image or defaults.image,
        "ports": [{"name": SLURMD, "containerPort": naming.SLURMD_PORT, "protocol": "TCP"}],
        "env": [
            {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "POD_UID", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}},
        ],
        "securityContext": security.slurmd(),
        "volumeMounts": [
            {"name": SPOOL_VOLUME, "mountPath": naming.SPOOL_FOLDER},
            # An image made for other daemons too may have a /run/slurm of the user slurm, which slurmd refuses.
            {"name": RUN_VOLUME, "mountPath": naming.RUN_FOLDER},
        ],
    }
    volumes: list[dict[str, Any]] = [{"name": SPOOL_VOLUME, "emptyDir": {}}, {"name": RUN_VOLUME, "emptyDir": {}}]
    key = naming.slurm_key(cluster)
    if key is not None:
        container["volumeMounts"].append({"name": KEY_VOLUME, "mountPath": CONF_FOLDER, "readOnly": True})
        volumes.append(
            {
                "name": KEY_VOLUME,
                "secret": {
                    "secretName": key.secret,
                    "defaultMode": 0o400,
                    "items": [{"key": key.key, "path": key.file}],
                },
            }
        )
    if defaults.image_pull_policy and nodeset.spec.image is None:
        container["imagePullPolicy"] = defaults.image_pull_policy
    if nodeset.spec.resources is not None:
        container["resources"] = nodeset.spec.resources.to_dict()
    return {
        "hostname": place.node,
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": GRACE_SECONDS,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "containers": [container],
        "volumes": volumes,
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": {labels.LABEL_NODESET_UID: nodeset.uid}},
            }
        ],
    }


def _search(pod_spec: dict[str, Any], nodeset: NodeSet, cluster: Cluster, domain: str) -> None:
    """Let jobs find other nodes by their short names, which are host names below a Service.

    A search list takes whole names only. Where the domain is not known, `<node>.<service>` is found all the same.
    """
    if not domain:
        return
    services = dict.fromkeys([pod_spec["subdomain"], naming.node_service(cluster.name)])
    config = pod_spec.setdefault("dnsConfig", {})
    given = config.get("searches") or []
    wanted = [f"{service}.{nodeset.namespace}.svc.{domain}" for service in services]
    config["searches"] = [*given, *(one for one in wanted if one not in given)]


def _labels(nodeset: NodeSet, cluster: Cluster, place: Place, revision: str) -> dict[str, str]:
    selector = nodeset.spec.selector
    defaults = naming.common_labels(cluster, COMPONENT)
    own = nodeset.spec.template or {}
    users = {
        **(selector.match_labels if selector is not None else {}),
        **((own.get("metadata") or {}).get("labels") or {}),
    }
    # Labels that say what an application is called are the user's to choose; those that say whose it is are not.
    named = {key: users.get(key, value) for key, value in defaults.items() if key.startswith("app.kubernetes.io/")}
    return {
        **(selector.match_labels if selector is not None else {}),
        **named,
        labels.LABEL_CLUSTER_NAME: cluster.name,
        labels.LABEL_CLUSTER_UID: cluster.uid,
        labels.LABEL_NODESET_NAME: nodeset.name,
        labels.LABEL_NODESET_UID: nodeset.uid,
        labels.LABEL_POD_NAME: place.pod,
        labels.LABEL_POD_HOSTNAME: place.node,
        labels.LABEL_SCALING_MODE: nodeset.mode.value,
        **({labels.LABEL_POD_INDEX: str(place.ordinal)} if place.ordinal is not None else {}),
        labels.LABEL_REVISION: revision,
        **({labels.LABEL_POD_PROTECT: "true"} if nodeset.spec.workload_disruption_protection else {}),
    }


def _arguments(
    nodeset: NodeSet, cluster: Cluster, place: Place, own: Mapping[str, Any], container: Mapping[str, Any]
) -> list[str]:
    """Arguments of slurmd: the user's, without their `--conf`, and ours with that merged in."""
    users, lines = _split_conf([str(word) for word in own.get("args") or ()])
    server = naming.conf_server(cluster)
    arguments = list(users)
    arguments += [flag for flag in ("-D", "-Z") if flag not in users]
    arguments += ["-N", place.node, "--instance-id", "$(POD_UID)"]
    arguments += ["--extra", identity.tag(nodeset.namespace, nodeset.name)]
    if server is not None and not _names_conf_server(users):
        arguments += ["--conf-server", server]
    return [*arguments, "--conf", conf.node_line(nodeset, container.get("resources") or {}, lines)]


def _split_conf(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """The arguments without `--conf`, and the values it had."""
    rest: list[str] = []
    lines: list[str] = []
    words = iter(arguments)
    for word in words:
        if word == "--conf":
            lines.append(next(words, ""))
        elif word.startswith("--conf="):
            lines.append(word.removeprefix("--conf="))
        else:
            rest.append(word)
    return rest, lines


def _names_conf_server(arguments: Iterable[str]) -> bool:
    return any(word == "--conf-server" or word.startswith("--conf-server=") for word in arguments)


def _own_conf_server(containers: Iterable[Mapping[str, Any]]) -> bool:
    return any(
        item.get("name") == SLURMD and _names_conf_server(map(str, item.get("args") or ())) for item in containers
    )


def _resources(nodeset: NodeSet, containers: Iterable[Mapping[str, Any]]) -> Mapping[str, Any]:
    given = nodeset.spec.resources.to_dict() if nodeset.spec.resources is not None else {}
    own = next((item for item in containers if item.get("name") == SLURMD), {})
    return merge(given, own.get("resources") or {})
