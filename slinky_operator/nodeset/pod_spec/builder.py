"""The slurmd pod: generated, with the user's template merged over it.

The user's template wins, except for the node's identity: host name and arguments link pod, Slurm node and NodeSet, and
a pod that registers as something else could not be drained. Such fields are rejected by name.

A complete template, as in manifests of Slinky 0.1 to 0.3, has arguments of its own; they are kept, and those for the
identity are added. How slurmd is started is decided by `launch`.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_api.v1alpha1.nodeset.spec import Confinement
from slinky_operator.kube.domain import search_below
from slinky_operator.kube.resources import PODS
from slinky_operator.nodeset.model import claims
from slinky_operator.nodeset.model.pods import guard, scheduling
from slinky_operator.nodeset.model.pods.pod_facts import SLURMD
from slinky_operator.nodeset.model.pods.pod_names import PodSlot
from slinky_operator.nodeset.pod_spec import generated, machine_autoscalers
from slinky_operator.nodeset.pod_spec.generated import Defaults
from slinky_operator.nodeset.pod_spec.validation import demand
from slinky_operator.nodeset.slurm_nodes import identity
from slinky_operator.slurm import naming
from slinky_operator.slurm.pod_templates import confinement, security, ssh_server
from slinky_operator.slurm.pod_templates.templates import POD_SPEC, merge
from slinky_operator.slurm.slurmd import launch, node_conf
from slinky_operator.slurm.slurmd.launch import CONF, CONF_SERVER, Launch

_LIMITS_OF_ENTRYPOINT: Final = frozenset({"POD_CPUS", "POD_MEMORY"})


def build(
    nodeset: NodeSet, cluster: Cluster, *, place: PodSlot, revision: str, guard_uid: str, defaults: Defaults
) -> dict[str, Any]:
    """Check the NodeSet and build one pod; for parameters see `PodBuilder`, for errors `validation.demand`."""
    demand(nodeset, cluster)
    return PodBuilder(nodeset, cluster, revision=revision, guard_uid=guard_uid, defaults=defaults).pod(place)


class PodBuilder:
    """What the pods of one NodeSet have in common, merged once for hundreds of them.

    Parameters
    ----------
    nodeset, cluster
        Their owners; they must have passed `validation.check`.
    revision
        Hash of the spec, for the label.
    guard_uid
        Uid of the second owner.
    defaults
        The operator's defaults.
    """

    def __init__(
        self, nodeset: NodeSet, cluster: Cluster, *, revision: str, guard_uid: str, defaults: Defaults
    ) -> None:
        self._nodeset = nodeset
        template = nodeset.spec.template or {}
        # Slinky named nodes after a template's host name; here they are named after the NodeSet or the Node.
        fragment: dict[str, Any] = {k: value for k, value in (template.get("spec") or {}).items() if k != "hostname"}
        self._spec = merge(generated.spec(nodeset, cluster, defaults), fragment, POD_SPEC)
        _tolerate(self._spec, scheduling.OUT_OF_REACH)
        self._spec["subdomain"] = nodeset.spec.service_name or naming.node_service(cluster.name)
        _search(self._spec, nodeset, cluster, defaults.domain)
        self._container = next(item for item in self._spec["containers"] if item["name"] == SLURMD)
        own: Mapping[str, Any] = next(
            (item for item in fragment.get("containers") or () if item.get("name") == SLURMD), {}
        )
        context = self._container.get("securityContext") or {}
        self._container["securityContext"] = security.agreeing(context, own.get("securityContext") or {})
        started = launch.read(own)
        confined = nodeset.spec.confinement is Confinement.CONSTRAIN
        self._container["command"] = list(_confined_command(nodeset) if confined else started.container_command)
        if started.joined:
            _offer_everything(self._container)
        self._arguments = arguments_of(nodeset, cluster, started, self._container)
        metadata = template.get("metadata") or {}
        self._labels = {**(metadata.get("labels") or {}), **generated.own_labels(nodeset, cluster, revision)}
        self._metadata = {
            "namespace": nodeset.namespace,
            "annotations": {
                "kubectl.kubernetes.io/default-container": SLURMD,
                **machine_autoscalers.of_new_pod(nodeset),
                **(metadata.get("annotations") or {}),
            },
            "ownerReferences": guard.owners(nodeset, guard_uid),
        }

    def pod(self, place: PodSlot) -> dict[str, Any]:
        """The pod for a slot. It shares parts with the other pods and must not be changed."""
        pod_spec = {**self._spec, "hostname": place.node}
        container = {**self._container, "args": self._arguments.of(place)}
        pod_spec["containers"] = [container if one is self._container else one for one in pod_spec["containers"]]
        own_claims = claims.volumes(self._nodeset, place.pod)
        replaced = {volume["name"] for volume in own_claims}
        pod_spec["volumes"] = [*(one for one in pod_spec["volumes"] if one.get("name") not in replaced), *own_claims]
        if place.host and place.ordinal is None:
            _pin(pod_spec, place.host)
        elif place.host:
            _return_to(pod_spec, place.host)
        return {
            "apiVersion": PODS.api_version,
            "kind": PODS.kind,
            "metadata": {
                **self._metadata,
                "name": place.pod,
                "labels": {**self._labels, **generated.labels_of(place)},
            },
            "spec": pod_spec,
        }


def _confined_command(nodeset: NodeSet) -> tuple[str, ...]:
    ssh = nodeset.spec.ssh
    return confinement.COMMAND if ssh is None else confinement.command(ssh_server.prepare(ssh.port), ssh_server.ATTEND)


def _offer_everything(container: dict[str, Any]) -> None:
    """Prevent an entrypoint like Slinky's from reserving what `CPUs` and `RealMemory` already leave out.

    It reserves the difference between the machine and these variables, as CoreSpecCount and MemSpecLimit.
    """
    container["env"] = [
        {"name": one["name"], "value": "0"} if one.get("name") in _LIMITS_OF_ENTRYPOINT else one
        for one in container.get("env") or ()
    ]


def _pin(pod_spec: dict[str, Any], host: str) -> None:
    """Pin a pod to one Node. Its own terms are known to match there; the operator notices a later change."""
    affinity = pod_spec.get("affinity") or {}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": scheduling.affinity_to(host)}
    pod_spec["affinity"] = {**affinity, "nodeAffinity": {**(affinity.get("nodeAffinity") or {}), **required}}
    _tolerate(pod_spec, (*scheduling.TOLERATIONS, scheduling.ANY_EVICTION))


def _tolerate(pod_spec: dict[str, Any], tolerations: Iterable[Mapping[str, str]]) -> None:
    """Add tolerations to those of the template."""
    given = list(pod_spec.get("tolerations") or ())
    pod_spec["tolerations"] = [
        *given,
        *(dict(toleration) for toleration in tolerations if dict(toleration) not in given),
    ]


def _return_to(pod_spec: dict[str, Any], host: str) -> None:
    """Restrict a pod to one Node; its own terms must match there as well, or it stays Pending."""
    affinity = pod_spec.get("affinity") or {}
    of_node = affinity.get("nodeAffinity") or {}
    pin = scheduling.affinity_to(host)["nodeSelectorTerms"][0]["matchFields"]
    terms = [dict(term) for term in scheduling.required_terms(pod_spec) or ()] or [{}]
    both = [{**term, "matchFields": [*(term.get("matchFields") or ()), *pin]} for term in terms]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": both}}
    pod_spec["affinity"] = {**affinity, "nodeAffinity": {**of_node, **required}}


def _search(pod_spec: dict[str, Any], nodeset: NodeSet, cluster: Cluster, domain: str) -> None:
    """Let jobs resolve other nodes by their short names, which are host names below a Service.

    A search list accepts complete names only. If the domain is not known, `<node>.<service>` is still resolved.
    """
    services = dict.fromkeys([pod_spec["subdomain"], naming.node_service(cluster.name)])
    search_below(pod_spec, nodeset.namespace, services, domain)


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of the slurmds of a NodeSet, without the name of each node."""

    before: tuple[str, ...]
    after: tuple[str, ...]

    def of(self, place: PodSlot) -> list[str]:
        """Those of one slurmd."""
        return [*self.before, place.node, *self.after]


def arguments_of(nodeset: NodeSet, cluster: Cluster, launch: Launch, container: Mapping[str, Any]) -> Arguments:
    """Arguments of slurmd: the user's, without their `--conf`, and the operator's with that merged in.

    Parameters
    ----------
    launch
        How the template starts slurmd.
    container
        The merged container, whose resources decide what the node offers.
    """
    server = naming.conf_server(cluster)
    # An entrypoint that uses a shell decides itself whether slurmd stays in the foreground.
    flags = ("-Z",) if launch.joined else ("-D", "-Z")
    before = [*launch.arguments, *(flag for flag in flags if flag not in launch.arguments), "-N"]
    after = ["--instance-id", "$(POD_UID)", "--extra", identity.tag(nodeset.namespace, nodeset.name)]
    if nodeset.spec.confinement is Confinement.CONSTRAIN:
        after += confinement.ARGUMENTS
    elif server is not None and not launch.names_conf_server:
        after += [CONF_SERVER, server]
    line = node_conf.node_line(nodeset, container.get("resources") or {}, launch.conf, machine=launch.is_whole)
    after += [CONF, shlex.quote(line) if launch.joined else line]
    return Arguments(tuple(before), tuple(after))
