"""slurmdbd: a StatefulSet with one pod, and a Service in front of it.

slurmdbd reads slurmdbd.conf only if that belongs to its user and nobody else may read it, which no mounted Secret can
be: the pod's first process copies it, once the volume holds the version that the pod is made for.

A slurmdbd that starts without its database retries every five seconds, forever, and reports it in its log only.
After some attempts the first process ends it, so that the last words are in the pod's status, and the kubelet starts it
again: once for each cause. From then on it waits for the database itself, and listens within seconds of its return; the
kubelet would restart it up to five minutes late. It is not ended while it is connected: bringing the tables of an older
release up to date may take hours, in which it does not listen yet.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, Final

from typing_extensions import override

from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.common import Component as ComponentSpec
from slinky_operator.cluster.daemons import default_images, image_of, locked_down, metadata, pod_security
from slinky_operator.cluster.daemons.availability import priority_after_slurmctld
from slinky_operator.cluster.daemons.component import Component, Materials
from slinky_operator.cluster.daemons.service_fragment import exposed, with_fragment
from slinky_operator.cluster.observe import Snapshot
from slinky_operator.cluster.parts.accounting import in_conf, stored, variants
from slinky_operator.cluster.parts.accounting.mariadb import ANNOTATION_MOUNTS, MARIADB
from slinky_operator.identity import pod as identity
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import SERVICES, STATEFULSETS
from slinky_operator.reconcile.pod_trouble import DaemonTrouble
from slinky_operator.reconcile.writes.children import Child, shows
from slinky_operator.slurm import naming
from slinky_operator.slurm.accounting.slurmdbd_conf import RUN_FOLDER, SLURMDBD_CONF
from slinky_operator.slurm.naming import KeySource
from slinky_operator.slurm.pod_templates.template_rules import fitted
from slinky_operator.slurm.pods.exit_messages import last_words

_CONFIG: Final = "config"
_SECRET: Final = "slurmdbd-conf"  # noqa: S105
_SECRET_FOLDER: Final = stored.SECRET_FOLDER
_KEYS: Final = "keys"
_RUN: Final = "run"
_TMP: Final = "tmp"

ATTEMPTS: Final = 6
"""Lines about the missing database, one or two in five seconds, until the words of a starting slurmdbd are shown."""

CAUSES: Final = 5
"""Causes that a pod shows, at most: words that differ each time must not restart slurmdbd forever."""

TOLD: Final = f"{naming.RUN_FOLDER}/told"
"""The causes that the pod has shown, one a line; the volume lasts as long as the pod."""

SLOW: Final = timedelta(seconds=60)
"""How long slurmdbd may run without listening before that is reported."""

NOT_LISTENING: Final = "NotListening"

_PREPARE: Final = f"""\
umask 077
until [ "$(cat {_SECRET_FOLDER}/{stored.VERSION} 2>/dev/null)" = "$CONF_VERSION" ]; do sleep 1; done
install -m 0600 {_SECRET_FOLDER}/{SLURMDBD_CONF} {naming.CONF_FOLDER}/{SLURMDBD_CONF} || exit
mkdir -p {RUN_FOLDER} || exit
"""

FOLLOWED: Final = f"""\
rm -f {naming.RUN_FOLDER}/said && mkfifo {naming.RUN_FOLDER}/said && touch {TOLD} || exit
follow() {{
  attempts=0 cause=
  while IFS= read -r line; do
    printf '%s\\n' "$line" >&2
    case "$line" in
      *"database must be up when starting"*) attempts=$((attempts + 1)) ;;
      *"error: "*) cause=${{line##*error: }} ;;
    esac
    [ "$attempts" -ge {ATTEMPTS} ] || continue
    attempts=0
    if [ "$(wc -l < {TOLD})" -lt {CAUSES} ] && [ "$(tail -n 1 {TOLD})" != "$cause" ]; then
      printf '%s\\n' "$cause" >> {TOLD}
      break
    fi
  done < {naming.RUN_FOLDER}/said
}}
follow & reader=$!
slurmdbd -D > {naming.RUN_FOLDER}/said 2>&1 & slurmdbd=$!
trap 'kill -TERM "$slurmdbd" 2>/dev/null' TERM INT
while kill -0 "$reader" 2>/dev/null; do wait "$reader"; done
# The reader ends after slurmdbd, or after too many attempts of it.
kill -KILL "$slurmdbd" 2>/dev/null
wait "$slurmdbd"
"""
"""slurmdbd, and a reader of what it says."""

_PORT: Final = {"tcpSocket": {"port": naming.SLURMDBD_PORT}}


class Slurmdbd(Component):
    """slurmdbd among the daemons of a Cluster."""

    daemon = naming.ACCOUNTING_CONTAINER
    component = naming.COMPONENT_ACCOUNTING
    resource = STATEFULSETS
    template_field = "spec.accounting.template"
    mounts_keys = True
    keeps_state = True

    @override
    def is_wanted(self, cluster: Cluster) -> bool:
        return variants.runs_slurmdbd(cluster)

    @override
    def spec(self, cluster: Cluster) -> ComponentSpec:
        return cluster.spec.accounting or ComponentSpec()

    @override
    def is_prepared(self, snapshot: Snapshot) -> bool:
        cluster = snapshot.cluster
        if not stored.holds(snapshot, naming.accounting(cluster.name), stored.contents(snapshot)):
            return False
        # The first one is started when its database answers; later ones wait for it by themselves.
        first = self.key(cluster) not in snapshot.children
        return not first or not variants.runs_database(cluster) or MARIADB.is_ready(snapshot)

    @override
    def services(self, materials: Materials) -> Iterable[Child]:
        cluster = materials.snapshot.cluster
        accounting = variants.wanted(cluster)
        fragment = accounting.service if accounting is not None else None
        about = metadata(cluster, naming.accounting(cluster.name), self.component)
        selector = naming.selector_labels(cluster, self.component)
        spec = exposed(fragment, selector, "slurmdbd", naming.SLURMDBD_PORT)
        yield Child(SERVICES, with_fragment({"metadata": about, "spec": spec}, fragment))

    @override
    def workload(self, materials: Materials) -> Child:
        """The StatefulSet; a pod that mounts the user's own key keeps it until something else replaces the pod."""
        cluster = materials.snapshot.cluster
        key, before = naming.mounted_key(cluster), naming.slurm_key(cluster)
        made, live = self._workload(materials, key), materials.snapshot.children.get(self.key(cluster))
        if live is None or key == before or _shows_pod(made, live):
            return made
        as_before = self._workload(materials, before)
        return as_before if _shows_pod(as_before, live) else made

    def _workload(self, materials: Materials, key: KeySource | None) -> Child:
        snapshot = materials.snapshot
        cluster, name = snapshot.cluster, naming.accounting(snapshot.cluster.name)
        own = self.spec(cluster)
        generated = {
            "metadata": {
                "labels": naming.pod_labels(cluster, self.component),
                "annotations": {ANNOTATION_MOUNTS: stored.slurmdbd_digest(snapshot)},
            },
            # It resolves the users of tokens and associations.
            "spec": identity.attached(
                {
                    "automountServiceAccountToken": False,
                    "enableServiceLinks": False,
                    "terminationGracePeriodSeconds": 60,
                    **priority_after_slurmctld(materials, name),
                    "securityContext": pod_security(naming.SLURM_UID, volumes=True),
                    "containers": [self._container(materials, key)],
                    "volumes": _volumes(cluster, key),
                },
                cluster,
                (self.daemon,),
                materials.images.sssd_image,
            ),
        }
        spec = {
            "replicas": 1,
            "serviceName": name,
            "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": naming.selector_labels(cluster, self.component)},
            "template": fitted(generated, own.template or {}, self.daemon),
        }
        notes = default_images.note(own, self.daemon)
        return Child(STATEFULSETS, {"metadata": metadata(cluster, name, self.component, notes), "spec": spec})

    @override
    def troubles(self, snapshot: Snapshot, wall: datetime) -> Iterable[DaemonTrouble]:
        found = tuple(super().troubles(snapshot, wall))
        yield from found
        if not found and not in_conf.slurmdbd_is_ready(snapshot):
            for pod in self.pods(snapshot):
                about, runs = pod["metadata"], _runs_since(pod, wall)
                said = last_words((pod.get("status") or {}).get("containerStatuses") or (), self.daemon)
                if runs and "database must be up" in said:
                    words = (
                        f"slurmdbd's pod {about['name']} runs and does not listen. It has said: {said.rstrip('.')}. It "
                        f"tries again every five seconds"
                    )
                    yield DaemonTrouble(self.daemon, NOT_LISTENING, words)
                elif runs > SLOW:
                    words = (
                        f"slurmdbd's pod {about['name']} runs and does not listen: it has not reached its database, or "
                        f"brings its tables up to date (kubectl -n {about.get('namespace', 'default')} logs "
                        f"{about['name']} says which)"
                    )
                    yield DaemonTrouble(self.daemon, NOT_LISTENING, words)

    def _container(self, materials: Materials, key: KeySource | None) -> dict[str, Any]:
        cluster, images = materials.snapshot.cluster, materials.images
        own = self.spec(cluster)
        assert key is not None  # noqa: S101 - a managed Cluster has one
        variable = "SLURM_SACK_JWKS" if key.file == naming.SLURM_JWKS else "SLURM_SACK_KEY"
        container: dict[str, Any] = {
            "name": self.daemon,
            **image_of(own.image, images.of(naming.ACCOUNTING_CONTAINER), images.pull_policy),
            "command": ["/bin/sh", "-c", f"{_PREPARE}{FOLLOWED}"],
            "env": [
                {"name": variable, "value": f"{naming.KEY_FOLDER}/{key.file}"},
                {"name": "CONF_VERSION", "value": stored.version_in(materials.snapshot)},
            ],
            "ports": [{"name": "slurmdbd", "containerPort": naming.SLURMDBD_PORT, "protocol": "TCP"}],
            "readinessProbe": {**_PORT, "periodSeconds": 5},
            "terminationMessagePolicy": "FallbackToLogsOnError",
            "securityContext": locked_down(),
            "volumeMounts": [
                {"name": _CONFIG, "mountPath": naming.CONF_FOLDER},
                {"name": _SECRET, "mountPath": _SECRET_FOLDER, "readOnly": True},
                {"name": _KEYS, "mountPath": naming.KEY_FOLDER, "readOnly": True},
                {"name": _RUN, "mountPath": naming.RUN_FOLDER},
                # Its default ArchiveDir, which it must be able to write to although it archives nothing.
                {"name": _TMP, "mountPath": "/tmp"},  # noqa: S108 - the container's own
            ],
        }
        if own.resources is not None:
            container["resources"] = own.resources.to_dict()
        return container


def _shows_pod(wanted: Child, live: Object) -> bool:
    """Whether a StatefulSet has the pod of another one."""
    template = wanted.body["spec"]["template"]
    return shows({"spec": {"template": template}}, {"spec": {"template": live["spec"]["template"]}})


def _volumes(cluster: Cluster, slurm_key: KeySource | None) -> list[dict[str, Any]]:
    keys = [one for one in (slurm_key, naming.jwt_key(cluster)) if one is not None]
    return [
        {"name": _CONFIG, "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}},
        {"name": _SECRET, "secret": {"secretName": naming.accounting(cluster.name), "defaultMode": 0o400}},
        {
            "name": _KEYS,
            "projected": {
                # Slurm rejects keys that others can read; the group is added by fsGroup.
                "defaultMode": 0o400,
                "sources": [
                    {"secret": {"name": key.secret, "items": [{"key": key.key, "path": key.file}]}} for key in keys
                ],
            },
        },
        {"name": _RUN, "emptyDir": {"medium": "Memory", "sizeLimit": "16Mi"}},
        {"name": _TMP, "emptyDir": {"medium": "Memory", "sizeLimit": "16Mi"}},
    ]


def _runs_since(pod: Object, wall: datetime) -> timedelta:
    """How long slurmdbd has been running in a pod; nothing if it does not."""
    for one in (pod.get("status") or {}).get("containerStatuses") or ():
        since = ((one.get("state") or {}).get("running") or {}).get("startedAt")
        if one.get("name") == naming.ACCOUNTING_CONTAINER and since is not None:
            return wall - datetime.fromisoformat(since)
    return timedelta()


SLURMDBD: Final = Slurmdbd()
