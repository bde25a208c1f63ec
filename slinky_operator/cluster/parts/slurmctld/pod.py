"""slurmctld's pod: the template of its StatefulSet, and how it compares with the running pod.

The agent runs beside slurmctld; it mounts the same configuration and no key. The configuration is a separate volume, so
that both read the same files; keys are mounted elsewhere, and slurm.conf names the path.

Its readiness probe is `scontrol ping`: both Slurm 24.11 and 26.05 support that, while 24.11 answers no HTTP.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from slinky_api import labels
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.cluster.daemons import Images, default_images, image_of, locked_down, pod_security, volumes
from slinky_operator.cluster.daemons.agent_container import agent_container
from slinky_operator.cluster.daemons.availability import priority
from slinky_operator.cluster.daemons.shared_objects import CONFIG_MODE
from slinky_operator.cluster.parts.accounting import in_conf
from slinky_operator.identity import pod as identity
from slinky_operator.kube.cache.managed_fields import applied_part, has_leftovers, inside
from slinky_operator.kube.domain import search_below
from slinky_operator.kube.objects import Object
from slinky_operator.reconcile.writes.children import Child, applied_fields, shows
from slinky_operator.slurm import naming
from slinky_operator.slurm.naming import KeySource
from slinky_operator.slurm.pod_templates.controller_process import first_process
from slinky_operator.slurm.pod_templates.template_rules import fitted

ANNOTATION_RESTART: Final = labels.CLUSTER_PREFIX + "restart"
"""On the pod template: values of keys that slurmctld reads only at start."""

ANNOTATION_POD_SPEC: Final = labels.CLUSTER_PREFIX + "pod-spec"
"""On the StatefulSet: digest of the pod settings in the Cluster's spec. It distinguishes a change that somebody
requested from one made by another version of the operator."""

STATE: Final = "state"
CONFIG: Final = "config"
KEYS: Final = "keys"
RUN: Final = "run"

_TAKE_ID_OF: Final = f"""\
id_of={naming.STATE_FOLDER}/.cluster-id-of
if [ "$(cat "$id_of" 2>/dev/null)" != "$CLUSTER_ID_OF" ]; then
  rm -f {naming.STATE_FOLDER}/clustername && printf %s "$CLUSTER_ID_OF" > "$id_of" || exit
fi
"""
"""Before the first process: once for each database, forget the cluster id that slurmctld has given itself, or had from
another database. It takes the one that slurmdbd gives it, and ends if it has another (`accounting.in_conf`)."""

_PING: Final = {"exec": {"command": ["scontrol", "ping"]}, "timeoutSeconds": 5}


START: Final = 1_000_000
"""Attempts, a second apart, until a slurmctld that does not answer is killed: practically never.

A starting slurmctld spends ten seconds on each static node that cannot be resolved, of which there may be tens of
thousands, and waits for slurmdbd as long as that takes. A restart would only begin the same wait again. The first
process notices a slurmctld that has ended. The number does not depend on the spec: another one would replace the pod.
"""

START_BEFORE: Final = 300
"""The value of earlier versions of the operator: no reason to replace a running pod."""


def template(
    cluster: Cluster, images: Images, restart: Mapping[str, str], start: int, key: KeySource | None
) -> dict[str, Any]:
    """Build the pod template.

    Parameters
    ----------
    restart
        Values of keys that slurmctld reads only at start.
    start
        Attempts of the startup probe, a second apart.
    key
        Where the key of auth/slurm is mounted from.

    Raises
    ------
    RefusedFragment
        The user's template cannot be merged over it.
    """
    spec, id_of = cluster.spec, restart.get(in_conf.RESTART_KEY)
    restart = {key: value for key, value in restart.items() if key != in_conf.RESTART_KEY}
    generated: dict[str, Any] = {
        "metadata": {
            "labels": naming.pod_labels(cluster, naming.COMPONENT_CONTROLLER),
            "annotations": {
                ANNOTATION_RESTART: " ".join(f"{key}={value}" for key, value in sorted(restart.items())),
                "kubectl.kubernetes.io/default-container": naming.CONTROLLER_CONTAINER,
                volumes.ANNOTATION: volumes.STATE,
            },
        },
        "spec": identity.attached(
            {
                "automountServiceAccountToken": False,
                "enableServiceLinks": False,
                "terminationGracePeriodSeconds": 30,
                **priority(images),
                "securityContext": pod_security(naming.SLURM_UID, volumes=True),
                "containers": [_slurmctld(cluster, images, start, id_of, key), _agent(cluster, images)],
                "volumes": _volumes(cluster, key),
            },
            cluster,
            (naming.CONTROLLER_CONTAINER,),
            images.sssd_image,
        ),
    }
    if id_of is not None:
        # Not among the keys for which the pod is restarted as it runs: it needs the other command too.
        generated["metadata"]["annotations"][in_conf.ANNOTATION_ID_OF] = id_of
    merged = fitted(generated, spec.controller.template or {}, naming.CONTROLLER_CONTAINER)
    # It looks up the host of an srun when it signals or ends its step: for ten seconds if the name does not resolve, in
    # which it answers nobody. In a job's script that is its node.
    search_below(merged["spec"], cluster.namespace, [naming.node_service(cluster.name)], images.domain)
    return merged


def keeps_state(template: Mapping[str, Any]) -> bool:
    """Whether slurmctld's state outlives a pod of this template."""
    return not any(
        one.get("name") == STATE and "emptyDir" in one for one in (template.get("spec") or {}).get("volumes") or ()
    )


def same_pod(wanted: Object, live: Object) -> bool:
    """Whether the pod would be the same except for its restart: the files it restarts for have been tried."""
    template, running = wanted["spec"]["template"], live["spec"]["template"]
    notes = {**template["metadata"]["annotations"], ANNOTATION_RESTART: restart_of(live)}
    body = {**template, "metadata": {**template["metadata"], "annotations": notes}}
    applied = inside(applied_fields(live), "spec", "template")
    return shows(body, running) and not (applied is not None and has_leftovers(applied, body, running))


def restart_of(stateful_set: Object) -> str | None:
    """What slurmctld's pod restarts for, as its template says it."""
    about = stateful_set["spec"]["template"].get("metadata") or {}
    value: str | None = (about.get("annotations") or {}).get(ANNOTATION_RESTART)
    return value


def image(template: Mapping[str, Any]) -> str:
    """Image of slurmctld in a pod template; empty if there is none."""
    containers = template["spec"]["containers"]
    return next((str(one.get("image")) for one in containers if one["name"] == naming.CONTROLLER_CONTAINER), "")


def with_image(wanted: Child, name: str) -> Child:
    """The StatefulSet with another image of slurmctld."""
    body, template = wanted.body, wanted.body["spec"]["template"]
    containers = [
        {**one, "image": name} if one["name"] == naming.CONTROLLER_CONTAINER else one
        for one in template["spec"]["containers"]
    ]
    template = {**template, "spec": {**template["spec"], "containers": containers}}
    return Child(wanted.resource, {**body, "spec": {**body["spec"], "template": template}})


def same_state(wanted: Mapping[str, Any], running: Mapping[str, Any]) -> bool:
    """Whether the slurmctld of one template reads what that of the other has saved."""
    return keeps_state(running) and _state_volume(wanted) == _state_volume(running)


def _state_volume(template: Mapping[str, Any]) -> Any:
    return next((one for one in template["spec"].get("volumes") or () if one["name"] == STATE), None)


def as_it_runs(wanted: Child, live: Object, *, restarts: bool) -> Child:
    """The StatefulSet with the running pod, restarted for the keys that need it if it may be.

    Only with the fields of that pod that the operator has applied: fields of others must not become the operator's.
    """
    body, template = wanted.body, live["spec"]["template"]
    applied = inside(applied_fields(live), "spec", "template")
    if applied:
        template = applied_part(applied, template)
    about = template.get("metadata") or {}
    notes = dict(about.get("annotations") or {})
    if restarts:
        notes[ANNOTATION_RESTART] = restart_of(body)
    kept = {**template, "metadata": {**about, "annotations": notes}}
    metadata = dict(body["metadata"])
    before, after = live["metadata"].get("annotations") or {}, metadata.get("annotations") or {}
    # One changes with the image. The other stays until the pod changes; older versions of the operator had none.
    own = {**after, default_images.ANNOTATION: before.get(default_images.ANNOTATION)}
    own |= {key: before[key] for key in (ANNOTATION_POD_SPEC,) if key in before}
    metadata["annotations"] = {key: value for key, value in own.items() if value is not None}
    return Child(wanted.resource, {**body, "metadata": metadata, "spec": {**body["spec"], "template": kept}})


def _slurmctld(
    cluster: Cluster, images: Images, start: int, id_of: str | None, key: KeySource | None
) -> dict[str, Any]:
    controller = cluster.spec.controller
    assert key is not None  # noqa: S101 - a managed Cluster has one
    variable = "SLURM_SACK_JWKS" if key.file == naming.SLURM_JWKS else "SLURM_SACK_KEY"
    container: dict[str, Any] = {
        "name": naming.CONTROLLER_CONTAINER,
        **image_of(controller.image, images.of(naming.CONTROLLER_CONTAINER), images.pull_policy),
        "command": ["/bin/sh", "-c", first_process()],
        "env": [{"name": variable, "value": f"{naming.KEY_FOLDER}/{key.file}"}],
        "ports": [{"name": "slurmctld", "containerPort": naming.SLURMCTLD_PORT, "protocol": "TCP"}],
        "startupProbe": {**_PING, "periodSeconds": 1, "failureThreshold": start},
        "readinessProbe": {**_PING, "periodSeconds": 10, "failureThreshold": 3},
        # The last output of slurmctld is shown in the Cluster's condition.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": locked_down(),
        "volumeMounts": [
            {"name": CONFIG, "mountPath": naming.CONF_FOLDER, "readOnly": True},
            {"name": KEYS, "mountPath": naming.KEY_FOLDER, "readOnly": True},
            {"name": STATE, "mountPath": naming.STATE_FOLDER},
            {"name": RUN, "mountPath": naming.RUN_FOLDER},
        ],
    }
    if id_of is not None:
        container["command"] = ["/bin/sh", "-c", f"{_TAKE_ID_OF}{first_process()}"]
        container["env"].append({"name": "CLUSTER_ID_OF", "value": id_of})
    if controller.resources is not None:
        container["resources"] = controller.resources.to_dict()
    return container


def _agent(cluster: Cluster, images: Images) -> dict[str, Any]:
    sssd = identity.has_sssd(cluster)
    mounts = [
        {"name": CONFIG, "mountPath": naming.CONF_FOLDER, "readOnly": True},
        {"name": STATE, "mountPath": naming.STATE_FOLDER, "readOnly": True},
        *([identity.sockets_mount()] if sssd else ()),
    ]
    words = [volumes.option(volumes.STATE, naming.STATE_FOLDER), *([identity.OFFLINE] if sssd else [])]
    return agent_container(images, naming.CONF_FOLDER, words, mounts)


def _volumes(cluster: Cluster, slurm_key: KeySource | None) -> list[dict[str, Any]]:
    persistence, jwt_key = cluster.spec.controller.persistence, naming.jwt_key(cluster)
    assert slurm_key is not None and jwt_key is not None  # noqa: PT018, S101 - a managed Cluster has both
    volumes: list[dict[str, Any]] = [
        {"name": CONFIG, "configMap": {"name": naming.config(cluster.name), "defaultMode": CONFIG_MODE}},
        {
            "name": KEYS,
            "projected": {
                # Slurm rejects keys that others can read; the group is added by fsGroup.
                "defaultMode": 0o400,
                "sources": [
                    {"secret": {"name": key.secret, "items": [{"key": key.key, "path": key.file}]}}
                    for key in (slurm_key, jwt_key)
                ],
            },
        },
        {"name": RUN, "emptyDir": {"medium": "Memory", "sizeLimit": "16Mi"}},
    ]
    if not persistence.enabled:
        volumes.append({"name": STATE, "emptyDir": {}})
    elif persistence.existing_claim is not None:
        volumes.append({"name": STATE, "persistentVolumeClaim": {"claimName": persistence.existing_claim}})
    return volumes
