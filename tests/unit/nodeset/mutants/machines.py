"""Mutants that have machines of Kubernetes Nodes rebooted or deleted wrongly, too often, or under others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from slinky_api import labels
from slinky_operator.kube.objects import Object
from slinky_operator.nodeset.execute.hosts import machines as steps
from slinky_operator.nodeset.execute.hosts import proof
from slinky_operator.nodeset.execute.hosts.machines import Machines
from slinky_operator.nodeset.health import machines, replacement
from slinky_operator.nodeset.model import kubernetes_nodes, pod_state
from slinky_operator.nodeset.model.kubernetes_nodes import KubernetesNode
from slinky_operator.nodeset.model.machines import Mark
from slurm_client import errors as slurm_errors


def jobs_not_looked_at(patch: pytest.MonkeyPatch) -> None:
    """What runs on the nodes of a machine is not looked up before it ends."""
    patch.setattr(steps, "why_in_use", lambda *_: None)


def drains_of_others_not_looked_at(patch: pytest.MonkeyPatch) -> None:
    """Nor is who has drained them."""
    patch.setattr(steps, "why_in_use", pod_state.why_kept)


def other_nodesets_not_looked_at(patch: pytest.MonkeyPatch) -> None:
    """Only pods of the NodeSet itself count."""
    real = proof.by_cluster

    def by_cluster(pods: Sequence[Object]) -> Any:
        return real([one for one in pods if one["metadata"]["labels"][labels.LABEL_NODESET_NAME] == "a"])

    patch.setattr(proof, "by_cluster", by_cluster)


def silence_is_emptiness(patch: pytest.MonkeyPatch) -> None:
    """A Slurm that does not answer has no jobs."""
    real = proof.reasons

    async def reasons(*given: Any) -> dict[str, str]:
        try:
            return await real(*given)
        except slurm_errors.SlurmError:
            return {}

    patch.setattr(proof, "reasons", reasons)


def pods_of_others_not_counted(patch: pytest.MonkeyPatch) -> None:
    """Whatever else runs on a machine ends with it."""
    patch.setattr(steps, "_counts", lambda _: False)


def asked_again(patch: pytest.MonkeyPatch) -> None:
    """What has been asked for is asked for once more."""
    patch.setattr(Machines, "_is_awaited", lambda *_: False)


def sent_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    """A mark says that a Node is cordoned, and no more."""
    real = steps._mark

    def read(node: Object) -> Mark | None:
        mark = real(node)
        return replace(mark, is_sent=False) if mark is not None else None

    patch.setattr(steps, "_mark", read)


def requests_not_awaited(patch: pytest.MonkeyPatch) -> None:
    """Whether a RebootNode is complete does not matter."""

    async def nothing(*_: Any) -> str:
        return ""

    patch.setattr(Machines, "_pending", nothing)


def requests_of_others_taken(patch: pytest.MonkeyPatch) -> None:
    """An annotation for a reboot is the operator's."""
    patch.setattr(steps, "_asked_by_others", lambda *_: False)


def marks_not_looked_at(patch: pytest.MonkeyPatch) -> None:
    """A Node that others have cordoned is as good as any."""

    async def check_mark(*_: Any, **__: Any) -> None:
        return None

    patch.setattr(Machines, "_check_mark", check_mark)
    real = machines.why_not

    def why_not(host: KubernetesNode | None, *rest: Any) -> str:
        return real(replace(host, cordoned=False) if host is not None else None, *rest)

    patch.setattr(machines, "why_not", why_not)


def uncordoned_is_safe(patch: pytest.MonkeyPatch) -> None:
    """A Node that somebody uncordons takes jobs again, whether its machine is asked for or not."""
    real = kubernetes_nodes.read

    def read(obj: Object) -> KubernetesNode:
        return replace(real(obj), cordoned=bool((obj.get("spec") or {}).get("unschedulable")))

    patch.setattr(kubernetes_nodes, "read", read)


def places_not_held(patch: pytest.MonkeyPatch) -> None:
    """A machine has no place in what may be out at a time."""
    patch.setattr(machines, "is_same_boot", lambda *_: False)


def absent_machines_do_not_count(patch: pytest.MonkeyPatch) -> None:
    """The budget has room for another node once the machine of one is gone."""
    real = replacement._under_way

    def under_way(snapshot: Any, now: Any) -> dict[str, float]:
        records, hosts = snapshot.nodeset.status.replacements or (), snapshot.hosts or {}
        gone = {one.pod for one in records if one.boot_id and not machines.is_same_boot(one, hosts.get(one.host))}
        return {name: left for name, left in real(snapshot, now).items() if name not in gone}

    patch.setattr(replacement, "_under_way", under_way)
