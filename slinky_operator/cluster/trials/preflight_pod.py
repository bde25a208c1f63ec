"""A preflight: a disposable pod in which a slurmctld and slurmds read a configuration before any running daemon does.

The pod is slurmctld's own, by its template, without everything that could affect the real Cluster: no claim, no key,
and slurmctld's host name mapped to itself. Each daemon writes its result about the configuration to its container's
termination message, which the operator reads from the pod's status: neither logs nor exec are needed.

Both Slurm 24.11 and 26.05 log `Running as primary controller` and `slurmd started on` once they have read everything,
each within 0.1 s; with `SlurmdUser=slurm` a slurmd starts without being root (measured). So the pod stays within the
restricted Pod Security level, unless a NodeSet sets its own security context for slurmd: then slurmd runs with that one
here too, since whether a cgroup plugin can start depends on it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.cluster.actions import TrialObjects
from slinky_operator.cluster.daemons import Images, locked_down, pod_security
from slinky_operator.cluster.daemons.shared_objects import CONFIG_MODE
from slinky_operator.cluster.parts.slurmctld import manifests as slurmctld
from slinky_operator.cluster.parts.slurmctld import pod as slurmctld_pod
from slinky_operator.cluster.trials import pods
from slinky_operator.cluster.trials.pods import TrialInput
from slinky_operator.cluster.trials.scripts import KEYS, WATCH, started
from slinky_operator.identity import pod as identity
from slinky_operator.kube.resources import PODS
from slinky_operator.reconcile.writes.children import Child
from slinky_operator.slurm import naming
from slinky_operator.slurm.conf.derive import FOLDER, derive
from slinky_operator.slurm.conf.programs import Programs, not_below
from slinky_operator.slurm.conf.render import hash_of
from slinky_operator.slurm.pod_templates import confinement, security
from slinky_operator.slurm.pod_templates.templates import RefusedFragment

MOST_SLURMDS: Final = 8
"""Maximum kinds of slurmd that one preflight tries: the first, in a fixed order."""

_RUN: Final = "run"
FOLDER_VOLUME: Final = "preflight"
"""Volume of what the daemons of the pod share and write."""

_LACKS: Final = """\
# Fails for a program that is there, and for one in a folder that only others may search.
is_missing() {
  [ -x "$1" ] && return 1
  if [ -e "$1" ]; then
    case "$(ls -ldL "$1" | cut -c1-10)" in *[xst]*) return 1 ;; *) return 0 ;; esac
  fi
  above=$1
  while above=${above%/*} && [ -n "$above" ]; do [ -e "$above" ] && break; done
  [ -z "$above" ] || [ -x "$above" ]
}
lacks=$(printf '%s\\n' "${PROGRAMS-}" | while IFS= read -r one; do
  [ -n "$one" ] && is_missing "${one#*=}" && printf '%s\\n' "error: $one: no such program in this daemon's image"
done)
"""
"""Lines of a shell that look for the programs of slurm.conf, each a line `Key=/path` of PROGRAMS."""

_SLURMCTLD: Final = f"""\
umask 027
cd {FOLDER} && mkdir state || exit 2
{_LACKS}if [ -n "$lacks" ]; then
  touch refused
  printf '%s\\n' "$lacks" | head -c 4000 > /dev/termination-log
  exit 1
fi
{KEYS} && chmod 600 ./*.key || exit 2
{started("slurmctld")}
set -- slurmctld "Running as primary controller" refused
{WATCH}slurmctld -V 2>&1 | head -c 200 > /dev/termination-log
touch ready
until [ "$(ls | grep -c '^told-')" -ge "$SLURMDS" ]; do sleep 0.05; done
exit 0
"""

_BEFORE_SLURMD: Final = f"""\
umask 027
cd {FOLDER} || exit 2
until [ -e ready ]; do
  # What slurmctld thinks is said by slurmctld.
  [ -e refused ] && exit 0
  sleep 0.05
done
{_LACKS}if [ -n "$lacks" ]; then
  touch "told-$NAME"
  printf '%s\\n' "$lacks" | head -c 4000 > /dev/termination-log
  exit 1
fi
"""

_AS_NODE: Final = '--conf "Feature=preflight CPUs=1 RealMemory=1 Port=$PORT"'

_AFTER_SLURMD: Final = f"""\
set -- "$NAME" "slurmd started on" "told-$NAME"
{WATCH}touch "told-$NAME"
exit 0
"""

_SLURMD: Final = f"""\
{_BEFORE_SLURMD}( slurmd -D -Z -N "$NAME" --conf-server "$SERVER" {_AS_NODE} \\
    > "$NAME.log" 2>&1; echo $? > "$NAME.end"; mv "$NAME.end" "$NAME.ended" ) &
{_AFTER_SLURMD}"""

# Where cgroups cannot be made, slurmd says nothing about the configuration: it counts as not tried.
_SLURMD_CONFINED: Final = f"""\
{_BEFORE_SLURMD}( if sh -c "$PREPARE" > "$NAME.log" 2>&1; then
    slurmd -D -Z -N "$NAME" {" ".join(confinement.ARGUMENTS)} {_AS_NODE} >> "$NAME.log" 2>&1
  else (exit 127); fi; echo $? > "$NAME.end"; mv "$NAME.end" "$NAME.ended" ) &
{_AFTER_SLURMD}"""


@dataclass(frozen=True, slots=True)
class SlurmdKind:
    """One way in which NodeSets run slurmd."""

    image: str
    security: Mapping[str, Any] | None = field(default=None, hash=False)
    """Security context set by a NodeSet; `None` for the operator's."""

    node_sets: tuple[str, ...] = field(default=(), compare=False)
    """The NodeSets that run it."""

    pull_secrets: tuple[str, ...] = ()
    """Pull secrets of its image."""

    node: str = field(default="", compare=False)
    """A Node where a pod of it runs; empty if there is none."""

    confined: bool = False
    """Whether it confines its jobs by cgroups, and so has files of its own."""

    volumes: tuple[str, ...] | None = field(default=None, compare=False)
    """Folders of volumes in its container; `None` if files of its image may be elsewhere, or it is not known."""

    @property
    def key(self) -> str:
        """Identifies the kind."""
        return json.dumps([self.image, self.security, *["confined"] * self.confined], sort_keys=True, default=str)


@dataclass(frozen=True, slots=True)
class Preflight(TrialObjects):
    """The objects of one preflight."""

    kinds: tuple[SlurmdKind, ...] = ()
    """Ways in which slurmd is run there, in the order of its containers."""

    def part(self, numbers: Collection[int]) -> Child:
        """The pod with some of its slurmds only, by their positions."""
        spec = self.pod.body["spec"]
        names = {f"slurmd-{number}" for number in range(len(self.kinds)) if number not in numbers}
        containers = [one for one in spec["containers"] if one["name"] not in names]
        return Child(PODS, {**self.pod.body, "spec": {**spec, "containers": containers}})


def preflight(
    given: TrialInput,
    kinds: Sequence[SlurmdKind],
    programs: Programs = Programs(),  # noqa: B008 - frozen
) -> Preflight:
    """Build the preflight of a configuration.

    Parameters
    ----------
    kinds
        Ways in which slurmd is run; the first `MOST_SLURMDS` are tried.
    programs
        Programs to look for in the images.
    """
    tried, node, digest = list(kinds[:MOST_SLURMDS]), given.node, hash_of(given.files)
    own_context = any(kind.security is not None for kind in tried)
    given = replace(given, template=given.template or _template(given.cluster, given.images))
    spec = pod_spec(given, tried, own_context=own_context, programs=programs)
    made = pods.objects(
        given.cluster,
        pods.CONFIGURATION,
        pods.placed(spec, node) if node else spec,
        identity={"hash": digest},
        note=digest,
        data=derive(given.files, "root" if own_context else "slurm"),
    )
    return Preflight(made.pod, made.config_map, node, tuple(tried))


def _template(cluster: Cluster, images: Images) -> dict[str, Any]:
    """Spec of slurmctld's pod; without the user's template if that is rejected, which is reported elsewhere."""
    try:
        made = slurmctld.stateful_set(cluster, images, {})
    except RefusedFragment:
        controller = cluster.spec.controller.model_copy(update={"template": None})
        spec = cluster.spec.model_copy(update={"controller": controller})
        made = slurmctld.stateful_set(cluster.model_copy(update={"spec": spec}), images, {})
    found: dict[str, Any] = made["spec"]["template"]["spec"]
    return found


def pod_spec(
    given: TrialInput,
    kinds: Sequence[SlurmdKind] = (),
    *,
    own_context: bool = False,
    programs: Programs = Programs(),  # noqa: B008 - frozen
) -> dict[str, Any]:
    """Build the spec of a preflight's pod.

    Parameters
    ----------
    kinds
        Ways in which slurmd is run; none for slurmctld alone.
    own_context
        Whether a slurmd has its own security context, so that the pod cannot have one for all.
    programs
        Programs to look for in the images.
    """
    cluster, images, template = given.cluster, given.images, given.template
    own = pods.container_of(template, naming.CONTROLLER_CONTAINER)
    ours = {slurmctld_pod.STATE, slurmctld_pod.CONFIG, slurmctld_pod.KEYS, slurmctld_pod.RUN, *identity.VOLUMES}
    # Volumes that can be shared without affecting the real slurmctld.
    volumes = [one for one in template["volumes"] if one["name"] not in ours and not pods.is_claim(one)]
    kept = {one["name"] for one in volumes}
    mounts = [one for one in own.get("volumeMounts") or () if one["name"] in kept]
    folders = [
        one["mountPath"] for one in own.get("volumeMounts") or () if one["name"] not in {*kept, slurmctld_pod.CONFIG}
    ]
    host, service = naming.controller_pod(cluster.name), naming.controller_host(cluster.name, cluster.namespace)
    spec = pods.of_template(template)
    secrets = dict.fromkeys(
        (
            *(one["name"] for one in spec.pop("imagePullSecrets", ())),
            *(name for kind in kinds for name in kind.pull_secrets),
        )
    )
    return {
        **spec,
        **({"imagePullSecrets": [{"name": name} for name in secrets]} if secrets else {}),
        "hostname": host,
        # The daemons in this pod can only connect to the slurmctld in it.
        "hostAliases": [*template.get("hostAliases", ()), {"ip": "127.0.0.1", "hostnames": [host, service]}],
        "securityContext": pod_security(naming.SLURM_UID, volumes=True)
        if not own_context
        else {"fsGroup": naming.SLURM_UID, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [
            _container(
                naming.CONTROLLER_CONTAINER,
                {key: own[key] for key in ("image", "imagePullPolicy") if key in own},
                _SLURMCTLD,
                {"SLURMDS": str(len(kinds)), **_looked_for(not_below(programs.slurmctld, folders))},
                mounts,
                slurmctld_security(),
            ),
            *(
                _slurmd(
                    kind,
                    number,
                    f"{service}:{naming.SLURMCTLD_PORT}",
                    images,
                    own_context=own_context,
                    programs=() if kind.volumes is None else not_below(programs.slurmd, kind.volumes),
                )
                for number, kind in enumerate(kinds)
            ),
        ],
        "volumes": [
            *volumes,
            {"name": pods.CONFIG, "configMap": {"name": "", "defaultMode": CONFIG_MODE}},
            {"name": FOLDER_VOLUME, "emptyDir": {"sizeLimit": "64Mi"}},
            *({"name": f"{_RUN}-{number}", "emptyDir": {"sizeLimit": "16Mi"}} for number in range(len(kinds) + 1)),
        ],
    }


def slurmctld_security() -> dict[str, Any]:
    """Complete security context of slurmctld's container: the pod's may be less strict, for slurmd."""
    return {**locked_down(), "runAsNonRoot": True, "runAsUser": naming.SLURM_UID, "runAsGroup": naming.SLURM_UID}


def _slurmd(
    kind: SlurmdKind, number: int, server: str, images: Images, *, own_context: bool, programs: Sequence[str]
) -> dict[str, Any]:
    image: dict[str, Any] = {"image": kind.image}
    if images.pull_policy and kind.image == images.of(naming.SLURMD):
        image["imagePullPolicy"] = images.pull_policy
    context = kind.security if kind.security is not None else security.slurmd()
    variables = {"NAME": f"preflight-{number}", "SERVER": server, "PORT": str(naming.SLURMD_PORT + 10 + number)}
    return _container(
        f"slurmd-{number}",
        image,
        _SLURMD_CONFINED if kind.confined else _SLURMD,
        {
            **variables,
            **({"PREPARE": confinement.FIRST_PROCESS} if kind.confined else {}),
            **_looked_for(programs),
        },
        [{"name": pods.CONFIG, "mountPath": confinement.GIVEN_FOLDER, "readOnly": True}] if kind.confined else [],
        dict(context) if own_context else slurmctld_security(),
        run=f"{_RUN}-{number + 1}",
        config=False,
    )


def _looked_for(programs: Sequence[str]) -> dict[str, str]:
    return {"PROGRAMS": "\n".join(programs)} if programs else {}


def _container(
    name: str,
    image: Mapping[str, Any],
    script: str,
    variables: Mapping[str, str],
    mounts: Sequence[Mapping[str, Any]],
    security: Mapping[str, Any],
    *,
    run: str = f"{_RUN}-0",
    config: bool = True,
) -> dict[str, Any]:
    key = {"SLURM_SACK_KEY": f"{FOLDER}/{naming.SLURM_KEY}"}
    return {
        "name": name,
        **image,
        **pods.running(script),
        "env": [{"name": variable, "value": value} for variable, value in {**key, **variables}.items()],
        "securityContext": dict(security),
        "volumeMounts": [
            *({"name": pods.CONFIG, "mountPath": naming.CONF_FOLDER, "readOnly": True} for _ in range(config)),
            {"name": FOLDER_VOLUME, "mountPath": FOLDER},
            {"name": run, "mountPath": naming.RUN_FOLDER},
            *map(dict, mounts),
        ],
    }
