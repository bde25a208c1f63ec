"""A pod that asks images which Slurm they have: each program prints its release (`slurmrestd -V`), and ends.

Tags prove nothing. The pod has no key, no configuration and no claim; it may run where slurmctld may. slurmdbd and
commands read a configuration before they print anything, and get one that names nothing (seen with 24.11 and 26.05).
Each container writes its answer to its termination message, which the operator reads from the pod's status.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_operator.cluster.actions import TrialObjects
from slinky_operator.cluster.daemons import locked_down, pod_security
from slinky_operator.cluster.trials import pods
from slinky_operator.slurm import naming

_TMP: Final = "/tmp"  # noqa: S108 - the container's own

LOGIN: Final = "srun"
"""The program by which images of login pods are asked."""

_FILES: Final[Mapping[str, str]] = {
    naming.ACCOUNTING_CONTAINER: "DbdHost=localhost\\nSlurmUser=slurm\\nStorageType=accounting_storage/mysql\\n",
    LOGIN: "ClusterName=none\\nSlurmctldHost=localhost\\nAuthType=auth/none\\n",
}
"""What a program must find before it prints its release."""

_PLACED_AS: Final = (
    "nodeSelector",
    "tolerations",
    "affinity",
    "priorityClassName",
    "runtimeClassName",
    "schedulerName",
)
"""Fields of slurmctld's pod that say where it may run."""


@dataclass(frozen=True, slots=True, order=True)
class Question:
    """An image, and the program in it that prints its release."""

    daemon: str
    image: str
    pull_policy: str = ""

    @property
    def key(self) -> str:
        """Identifies program and image."""
        return f"{self.daemon} {self.image}"


def version_pod(
    cluster: Cluster, asked: Sequence[Question], template: Mapping[str, Any], pull_secrets: Iterable[str]
) -> TrialObjects:
    """Build the pod.

    Parameters
    ----------
    asked
        In the order of its containers, `asked-0` and so on.
    template
        Spec of slurmctld's pod: where it may run.
    pull_secrets
        Pull secrets of the images.
    """
    pull = [{"name": name} for name in sorted(set(pull_secrets))]
    spec: dict[str, Any] = {
        **{field: template[field] for field in _PLACED_AS if template.get(field)},
        **({"imagePullSecrets": pull} if pull else {}),
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        **pods.ENDS,
        "securityContext": pod_security(naming.SLURM_UID),
        "containers": [_container(number, one) for number, one in enumerate(asked)],
        "volumes": [{"name": "tmp", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}}],
    }
    return pods.objects(cluster, pods.VERSIONS, spec, identity={})


def _container(number: int, one: Question) -> dict[str, Any]:
    return {
        "name": f"asked-{number}",
        "image": one.image,
        **({"imagePullPolicy": one.pull_policy} if one.pull_policy else {}),
        **pods.running(_script(one.daemon), "16Mi"),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": locked_down(),
        "volumeMounts": [{"name": "tmp", "mountPath": _TMP}],
    }


def _script(program: str) -> str:
    text = _FILES.get(program)
    # Containers share the folder, and must not read each other's half-written files.
    files = f"""\
umask 077
cd "$(mktemp -d {_TMP}/asked-XXXXXX)" || exit
printf '{text}' > slurmdbd.conf && cp slurmdbd.conf slurm.conf || exit
export SLURM_CONF="$PWD/slurm.conf"
"""
    return f"{files if text else ''}{program} -V > /dev/termination-log"
