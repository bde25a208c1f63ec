"""The ways in which slurmd is run in a Cluster, each once: what a preflight tries. Pure.

Two slurmds are of one kind if image and security context are the same, and both confine their jobs or neither does.
Kinds come from the NodeSets, and from the pods that may hold jobs: during an update, or while it is stuck, those
differ, and a configuration could end the running slurmd.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from slinky_api import labels
from slinky_api.conditions import PodCondition
from slinky_api.v1alpha1.nodeset.kind import NodeSet
from slinky_api.v1alpha1.nodeset.spec import Confinement
from slinky_operator.cluster.daemons import Images
from slinky_operator.cluster.trials.preflight_pod import SlurmdKind
from slinky_operator.kube.objects import Object
from slinky_operator.slurm import naming
from slinky_operator.slurm.pod_templates import confinement, security, ssh_server
from slinky_operator.slurm.pod_templates.shapes import POD_TEMPLATE, misfits
from slinky_operator.slurm.pod_templates.templates import RefusedFragment, merge

SLURMD: Final = "slurmd"
"""Name of slurmd's container in its pod."""


def kinds(node_sets: Sequence[NodeSet], images: Images, pods: Iterable[Object] = ()) -> tuple[SlurmdKind, ...]:
    """The ways in which slurmd is run: those of running pods first, each part in a fixed order.

    Parameters
    ----------
    node_sets
        NodeSets whose pods will be created.
    pods
        slurmd pods of the Cluster.
    """
    found: dict[str, SlurmdKind] = {}
    for one in node_sets:
        # No pod is created from a template of another shape, or one that cannot be merged; its NodeSet says why.
        if next(misfits(one.spec.template or {}, POD_TEMPLATE), None) is None:
            with suppress(RefusedFragment):
                _add(found, _of_node_set(one, images))
    for kind in _running(pods):
        _add(found, kind)
    return tuple(sorted(found.values(), key=lambda kind: (not kind.node, kind.key)))


def _add(found: dict[str, SlurmdKind], kind: SlurmdKind) -> None:
    known = found.get(kind.key)
    if known is None:
        found[kind.key] = kind
        return
    found[kind.key] = replace(
        known,
        node_sets=tuple(dict.fromkeys((*known.node_sets, *kind.node_sets))),
        pull_secrets=tuple(dict.fromkeys((*known.pull_secrets, *kind.pull_secrets))),
        node=known.node or kind.node,
        # What is known of a NodeSet's container holds for its pods too; of a pod alone nothing is.
        volumes=_both(known.volumes, kind.volumes) if kind.node_sets and not kind.node else known.volumes,
    )


def _of_node_set(node_set: NodeSet, images: Images) -> SlurmdKind:
    spec = (node_set.spec.template or {}).get("spec") or {}
    own: Mapping[str, Any] = next((item for item in spec.get("containers") or () if item.get("name") == SLURMD), {})
    given = own.get("securityContext")
    confined = node_set.spec.confinement is Confinement.CONSTRAIN
    more = ssh_server.CAPABILITIES if node_set.spec.ssh is not None else ()
    base = confinement.security_context(more) if confined else security.slurmd()
    context = security.agreeing(merge(base, given or {}), given or {}) if given or confined else None
    image = own.get("image") or node_set.spec.image or images.of(naming.SLURMD)
    # A command, or a hook, of the user's may write programs when a container starts.
    unknown = any(own.get(key) for key in ("command", "args", "lifecycle"))
    volumes = None if unknown else tuple(str(one.get("mountPath") or "/") for one in own.get("volumeMounts") or ())
    return SlurmdKind(image, context, (node_set.name,), _pull_secrets(spec), confined=confined, volumes=volumes)


def _both(one: tuple[str, ...] | None, other: tuple[str, ...] | None) -> tuple[str, ...] | None:
    return None if one is None or other is None else tuple(dict.fromkeys((*one, *other)))


def _running(pods: Iterable[Object]) -> Iterable[SlurmdKind]:
    """One for each NodeSet, image and security context among pods that may hold jobs: their nodes have been in Slurm.

    With a Node where one is Ready, if any is.
    """
    found: dict[tuple[str, str, str, bool], tuple[bool, Object, Mapping[str, Any]]] = {}
    for pod in pods:
        spec, status = pod.get("spec") or {}, pod.get("status") or {}
        met = {one.get("type") for one in status.get("conditions") or () if one.get("status") == "True"}
        if status.get("phase") != "Running" or not spec.get("nodeName") or PodCondition.REGISTERED not in met:
            continue
        own = next((item for item in spec.get("containers") or () if item.get("name") == SLURMD), None)
        if own is None:
            continue
        name = (pod["metadata"].get("labels") or {}).get(labels.LABEL_NODESET_NAME, "")
        key = (name, own.get("image", ""), repr(own.get("securityContext")), confinement.is_confined(own))
        ready = "Ready" in met
        if key not in found or (ready and not found[key][0]):
            found[key] = ready, pod, own
    for (name, image, _, confined), (_, pod, own) in sorted(found.items()):
        context = own.get("securityContext")
        yield SlurmdKind(
            image,
            None if context in (None, security.slurmd()) else context,
            (name,),
            _pull_secrets(pod["spec"]),
            pod["spec"]["nodeName"],
            confined=confined,
        )


def _pull_secrets(spec: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(one["name"] for one in spec.get("imagePullSecrets") or () if one.get("name"))
