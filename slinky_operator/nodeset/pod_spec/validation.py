"""What a template may not set, since it links pod, Slurm node and NodeSet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from typing_extensions import override

from slinky_api import labels
from slinky_api.errors import SpecError
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.nodeset.kind import NAME_LENGTH, NAME_MESSAGE, NodeSet
from slinky_api.v1alpha1.nodeset.spec import Confinement, Ssh
from slinky_operator.nodeset.model import claims
from slinky_operator.nodeset.model.pods.pod_facts import SLURMD
from slinky_operator.nodeset.pod_spec import generated, job_logs
from slinky_operator.nodeset.pod_spec.generated import CHECKS_VOLUME, CONFIG_VOLUME, KEY_VOLUME, Defaults
from slinky_operator.slurm import naming
from slinky_operator.slurm.pod_templates import ssh_server
from slinky_operator.slurm.pod_templates.shapes import CLAIM, misfits
from slinky_operator.slurm.pod_templates.templates import POD_SPEC, POD_TEMPLATE, RefusedFragment, merge
from slinky_operator.slurm.pods import pod_ownership
from slinky_operator.slurm.slurmd import launch, node_conf, resources

MOST_PROBLEMS: Final = 8
"""Maximum number of fields of the wrong type that are reported at a time."""

_ANOTHER_NAME: Final = "Create a NodeSet with a shorter name, scale this one to 0, and delete it once it is empty"
_OWN_ENVIRONMENT: Final = frozenset({"POD_NAME", "POD_UID"})
_OWN_LABELS: Final = frozenset({labels.LABEL_REVISION})
_CHECKS_ELSEWHERE: Final = (
    "need a Cluster that the operator runs: slurm.conf of one that runs elsewhere has to name the program for them. Set"
    " HealthCheckProgram there, to a program of your own"
)
_PORTS_OF_PODS: Final[Mapping[int, str]] = {naming.SLURMD_PORT: "slurmd", naming.JOB_LOGS_PORT: "the job log server"}
_REFUSED_SPEC: Final = ("subdomain", "nodeName")


@dataclass(frozen=True, slots=True)
class Problem:
    """A field that prevents pods from being created, and why."""

    field: str
    reason: str

    @override
    def __str__(self) -> str:
        return f"{self.field}: {self.reason}"


class RefusedTemplate(SpecError, ValueError):
    """No pod can be created from this NodeSet; carries all invalid fields."""

    def __init__(self, nodeset: NodeSet, problems: Sequence[Problem]) -> None:
        self.nodeset = nodeset
        self.problems = tuple(problems)
        super().__init__(f"NodeSet {nodeset.namespace}/{nodeset.name}: {'; '.join(map(str, problems))}")


def demand(nodeset: NodeSet, cluster: Cluster) -> None:
    """Check whether pods can be created from a NodeSet that has not been checked yet.

    Raises
    ------
    RefusedTemplate
        The template would break the node's identity, or lacks something that has no default.
    """
    problems = list(check(nodeset, cluster))
    if problems:
        raise RefusedTemplate(nodeset, problems)


def check(nodeset: NodeSet, cluster: Cluster) -> Iterable[Problem]:
    """All fields of the NodeSet that prevent its pods from being created; none if they can be."""
    yield from _check_name(nodeset)
    template = nodeset.spec.template or {}
    odd = [Problem(field, reason) for field, reason in misfits(template, POD_TEMPLATE, "spec.template")]
    odd += [
        Problem(field, reason)
        for place, claim in enumerate(nodeset.spec.volume_claim_templates)
        for field, reason in misfits(claim, CLAIM, f"spec.volumeClaimTemplates[{place}]")
    ]
    if odd:
        # Nothing else may read a template of another shape.
        yield from odd[:MOST_PROBLEMS]
        return
    spec = template.get("spec") or {}
    where = "spec.template.spec"
    for field in _REFUSED_SPEC:
        if spec.get(field):
            yield Problem(f"{where}.{field}", "is the operator's: it determines which Slurm node the pod is")
    if spec.get("restartPolicy") not in {None, "Always"}:
        yield Problem(f"{where}.restartPolicy", "must be Always: a slurmd that ended comes back under the same name")
    yield from _check_labels(nodeset, cluster, template)
    yield from _check_health(nodeset, cluster)
    try:
        merged = merge(generated.spec(nodeset, cluster, Defaults(image="")), spec, POD_SPEC)
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
    if nodeset.spec.confinement is Confinement.CONSTRAIN:
        yield from _check_confined(cluster, containers, where)
    yield from _check_ssh(nodeset.spec.ssh, containers, where)
    for field, reason in claims.check(nodeset, _volumes(nodeset)):
        yield Problem(field, reason)
    yield from _check_line(nodeset, containers)


def _volumes(nodeset: NodeSet) -> set[str]:
    """Names of volumes that the operator gives to pods of this NodeSet."""
    spec = nodeset.spec
    return {
        KEY_VOLUME,
        *({CHECKS_VOLUME} if spec.health is not None and spec.health.checks else ()),
        *({CONFIG_VOLUME} if spec.confinement is Confinement.CONSTRAIN else ()),
        *(job_logs.VOLUMES if spec.job_logs else ()),
        *((ssh_server.USERS_VOLUME, ssh_server.HOST_KEYS_VOLUME) if spec.ssh is not None else ()),
    }


def _check_health(nodeset: NodeSet, cluster: Cluster) -> Iterable[Problem]:
    if nodeset.spec.health is not None and nodeset.spec.health.checks and cluster.spec.external:
        yield Problem("spec.health.checks", _CHECKS_ELSEWHERE)


def _check_line(nodeset: NodeSet, containers: Iterable[Mapping[str, Any]]) -> Iterable[Problem]:
    try:
        node_conf.node_line(nodeset, resources.of(nodeset, containers))
    except node_conf.InvalidQuantity as error:
        yield Problem("spec.resources", str(error))
    except node_conf.UnbalancedQuotes as error:
        yield Problem("spec.extraConf", str(error))


def _check_name(nodeset: NodeSet) -> Iterable[Problem]:
    """A longer name is from Slinky, before this operator's CRD: its pods are drained and deleted, none is created."""
    if len(nodeset.name) > NAME_LENGTH:
        yield Problem("metadata.name", f"{NAME_MESSAGE.removeprefix('metadata.name ')}. {_ANOTHER_NAME}")


def _check_labels(nodeset: NodeSet, cluster: Cluster, template: Mapping[str, Any]) -> Iterable[Problem]:
    """The operator's labels are allowed with the value that it writes: Slinky's chart writes some of them too."""
    selector = nodeset.spec.selector
    own = generated.reserved_labels(nodeset, cluster)
    given = {
        "spec.template.metadata.labels": (template.get("metadata") or {}).get("labels") or {},
        "spec.selector.matchLabels": selector.match_labels if selector is not None else {},
    }
    for where, found in given.items():
        for label, value in found.items():
            if not (label.startswith(pod_ownership.OWN_PREFIXES) or label in _OWN_LABELS) or own.get(label) == value:
                continue
            only = f", and may only be {own[label]}" if label in own else ""
            yield Problem(f"{where}[{label}]", f"is the operator's: it says whose a pod is{only}")


def _check_containers(containers: Iterable[Mapping[str, Any]], where: str) -> Iterable[Problem]:
    for place, container in enumerate(containers):
        at = f"{where}.containers[{place}]"
        if container.get("name") == SLURMD:
            yield from _check_slurmd(container, at)
        elif not container.get("image"):
            yield Problem(f"{at}.image", "is missing")


def _check_slurmd(container: Mapping[str, Any], at: str) -> Iterable[Problem]:
    yield from (Problem(f"{at}.{field}", why) for field, why in launch.read(container).problems[:MOST_PROBLEMS])
    for place, variable in enumerate(container.get("env") or ()):
        if variable.get("name") in _OWN_ENVIRONMENT:
            yield Problem(f"{at}.env[{place}]", f"{variable['name']} is the operator's: it names the node")


def _check_confined(cluster: Cluster, containers: Iterable[Mapping[str, Any]], where: str) -> Iterable[Problem]:
    """What keeps the operator from starting slurmd so that it confines its jobs."""
    if cluster.spec.external:
        yield Problem(
            "spec.confinement",
            "Constrain needs a Cluster that the operator runs: slurm.conf of one that runs elsewhere is not known here."
            " Set ProctrackType and TaskPlugin there",
        )
    for place, container in enumerate(containers):
        if container.get("name") != SLURMD:
            continue
        at = f"{where}.containers[{place}]"
        if container.get("command"):
            yield Problem(
                f"{at}.command",
                "cannot be set with confinement Constrain: slurmd is started by what makes its cgroups; use args",
            )
        yield from (
            Problem(
                f"{at}.args[{number}]",
                f"{option} cannot be set with confinement Constrain, for which slurmd reads a slurm.conf of its own",
            )
            for number, word in enumerate(container.get("args") or ())
            if (option := str(word).split("=", 1)[0]) in {launch.CONF_SERVER, "-f"}
        )
        if (container.get("securityContext") or {}).get("privileged"):
            yield Problem(
                f"{at}.securityContext.privileged",
                "cannot be true with confinement Constrain: a privileged"
                " container has the cgroups of the machine, and none of its own",
            )


def _check_ssh(ssh: Ssh | None, containers: Iterable[Mapping[str, Any]], where: str) -> Iterable[Problem]:
    """What would keep sshd from starting beside slurmd."""
    if ssh is None:
        return
    if ssh.port in _PORTS_OF_PODS:
        yield Problem("spec.ssh.port", f"{ssh.port} is the port of {_PORTS_OF_PODS[ssh.port]} in the same pod")
    for place, container in enumerate(containers):
        if container.get("name") == SLURMD and (container.get("securityContext") or {}).get("readOnlyRootFilesystem"):
            yield Problem(
                f"{where}.containers[{place}].securityContext.readOnlyRootFilesystem",
                "cannot be true with ssh: the files of sshd and PAM are written when the pod starts",
            )


def _own_conf_server(containers: Iterable[Mapping[str, Any]]) -> bool:
    return any(item.get("name") == SLURMD and launch.read(item).names_conf_server for item in containers)
