"""A rehearsal: a disposable pod from the new template of slurmctld's pod, created before that pod is replaced.

It shows the effect of a template, an image or a claim: whether the pod is admitted, finds a Node and its volumes, has
its images, starts its containers with their security contexts, and whether slurmctld of that image runs with the live
configuration. Like a preflight it has no key, no state and no address of the real one.

What it must not do determines the rest. Claims of the running pod are left out: they are bound, and a volume attached
to one Node could not be mounted on another. New claims are in the pod, so that they have to be bound, but in no
container. Other containers, which may do anything, are started with a command that no image has: this needs their
image, variables and mounts, and ends at once. Requests are only those beyond the running pod's, whose own are free when
it is deleted, on the running pod's Node if possible.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, Final

from slinky_operator.cluster.actions import TrialObjects
from slinky_operator.cluster.trials import pods
from slinky_operator.cluster.trials.pods import TrialInput
from slinky_operator.cluster.trials.preflight_pod import pod_spec
from slinky_operator.reconcile.writes.children import quantity
from slinky_operator.slurm import naming
from slinky_operator.slurm.conf.derive import derive
from slinky_operator.slurm.conf.render import hash_of

NO_COMMAND: Final = "/no-fault-this-trial-runs-slurmctld-only"
"""The command of containers other than slurmctld's: the kubelet names it in a Warning, and so says what that means."""

_KEY_VARIABLES: Final = frozenset({"SLURM_SACK_KEY", "SLURM_SACK_JWKS"})


def rehearsal(given: TrialInput) -> TrialObjects:
    """Build the rehearsal of a pod template, with the live configuration."""
    data, digest = derive(given.files, "slurm"), hash_of(given.files)
    return pods.objects(given.cluster, pods.REHEARSAL, _spec(given), identity={"hash": digest}, note=digest, data=data)


def claims(spec: Mapping[str, Any]) -> frozenset[str]:
    """Names of the claims in a pod's spec, and of its ephemeral volumes with a claim."""
    found = set()
    for one in spec.get("volumes") or ():
        if "ephemeral" in one:
            found.add(one["name"])
        elif "persistentVolumeClaim" in one:
            found.add(one["persistentVolumeClaim"].get("claimName", ""))
    return frozenset(found)


def _spec(given: TrialInput) -> dict[str, Any]:
    template, running = given.template, given.running
    spec = pod_spec(given)
    new = [one for one in template.get("volumes") or () if claims({"volumes": [one]}) - claims(running)]
    there = {one["name"] for one in spec["volumes"]}
    own = pods.container_of(template, naming.CONTROLLER_CONTAINER)
    others = [
        one
        for one in (*(template.get("initContainers") or ()), *template["containers"])
        if one["name"] != naming.CONTROLLER_CONTAINER
    ]
    more = _more(template, running)
    return {
        **spec,
        "securityContext": template.get("securityContext") or {},
        "affinity": _near(template.get("affinity") or {}, given.node),
        "containers": [
            with_own(spec["containers"][0], own),
            *(_stand_in(one, there, more if number == 0 else {}) for number, one in enumerate(others)),
        ],
        "volumes": [*spec["volumes"], *map(_read_only, new)],
    }


def _read_only(volume: Mapping[str, Any]) -> dict[str, Any]:
    if "persistentVolumeClaim" not in volume:
        return dict(volume)
    return {**volume, "persistentVolumeClaim": {**volume["persistentVolumeClaim"], "readOnly": True}}


def with_own(made: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """slurmctld's container of a preflight, with the settings of the template."""
    variables = [one for one in own.get("env") or () if one["name"] not in _KEY_VARIABLES]
    known = {one["name"] for one in made["env"]}
    container = {
        **made,
        "env": [*made["env"], *(one for one in variables if one["name"] not in known)],
        "securityContext": own.get("securityContext") or {},
    }
    if own.get("envFrom"):
        container["envFrom"] = own["envFrom"]
    limits: Mapping[str, Any] = (own.get("resources") or {}).get("limits") or {}
    if limits:
        requests = dict(made["resources"]["requests"])
        for name, limit in limits.items():
            asked, most = quantity(requests.get(name, "0")), quantity(limit)
            # A request that is not set would be as high as the limit.
            requests[name] = requests.get(name, "0") if asked is None or most is None or asked <= most else limit
        plain = {name: limit for name, limit in limits.items() if name in {"cpu", "memory", "ephemeral-storage"}}
        asked_for = {name: value for name, value in requests.items() if name in {"cpu", "memory", *plain}}
        container["resources"] = {"requests": asked_for, "limits": plain}
    return container


def _stand_in(container: Mapping[str, Any], volumes: Iterable[str], more: Mapping[str, str]) -> dict[str, Any]:
    """A container that is started and does nothing."""
    kept = ("name", "image", "imagePullPolicy", "env", "envFrom", "securityContext")
    there = set(volumes)
    return {
        **{key: container[key] for key in kept if key in container},
        "command": [NO_COMMAND],
        "volumeMounts": [one for one in container.get("volumeMounts") or () if one["name"] in there],
        "resources": {"requests": dict(more), "limits": dict(more)} if more else {},
    }


def _more(template: Mapping[str, Any], running: Mapping[str, Any]) -> dict[str, str]:
    """What the new pod requests beyond the running one."""
    wanted, had = _requests(template), _requests(running)
    return {name: f"{(value - had[name]).normalize():f}" for name, value in sorted(wanted.items()) if value > had[name]}


def _requests(spec: Mapping[str, Any]) -> defaultdict[str, Decimal]:
    found: defaultdict[str, Decimal] = defaultdict(Decimal)
    for one in spec.get("containers") or ():
        resources = one.get("resources") or {}
        for name, value in {**(resources.get("limits") or {}), **(resources.get("requests") or {})}.items():
            found[name] += quantity(value) or Decimal()
    return found


def _near(affinity: Mapping[str, Any], node: str) -> dict[str, Any]:
    """Prefer slurmctld's Node: the running pod's requests become free there."""
    if not node:
        return dict(affinity)
    of_nodes = affinity.get("nodeAffinity") or {}
    field = "preferredDuringSchedulingIgnoredDuringExecution"
    here = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    return {
        **affinity,
        "nodeAffinity": {**of_nodes, field: [*of_nodes.get(field, ()), {"weight": 100, "preference": here}]},
    }
