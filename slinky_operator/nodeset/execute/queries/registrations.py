"""Asks the API server which pods have registered, past the cache: the last look before what may end a job.

Of many pods that come at once, the registration is recorded in the NodeSet's status alone (`registered_pods`): the
version of a pod does not show it, and the cache of NodeSets may lack what another operator, the leader until a moment
ago, has written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pydantic import ValidationError

from slinky_api.v1alpha1.nodeset.status import RegisteredPods
from slinky_operator.kube import errors as kube_errors
from slinky_operator.kube.cache.store import Key
from slinky_operator.kube.objects import Object
from slinky_operator.kube.ports import Getter
from slinky_operator.kube.resources import NODESETS
from slinky_operator.nodeset.model.pods import registered_pods
from slinky_operator.nodeset.model.pods.pod_facts import Pod
from slinky_operator.nodeset.model.pods.registered_pods import RecordedPods


async def with_registrations(kube: Getter, key: Key, uid: str, pods: Sequence[Pod]) -> list[Pod]:
    """Pods of a NodeSet as its status shows them now; each may have registered if the status does not say.

    Parameters
    ----------
    key, uid
        The NodeSet. Another one of its name says nothing of these pods.
    pods
        Pods as the cache shows them. If all of them have registered, nothing is asked.

    Raises
    ------
    KubeError
        The API server does not answer, or refuses: nothing is known of them.
    """
    if all(pod.registered for pod in pods):
        return list(pods)
    namespace, name = key
    try:
        recorded = _recorded(await kube.get(NODESETS, name, namespace), uid)
    except kube_errors.NotFound:
        recorded = None
    return [_with(pod, recorded) for pod in pods]


def _recorded(nodeset: Object, uid: str) -> RecordedPods | None:
    """The pods that a NodeSet records; None if it does not say."""
    if nodeset["metadata"]["uid"] != uid:
        return None
    stored = (nodeset.get("status") or {}).get("registered")
    try:
        return registered_pods.read(RegisteredPods.model_validate(stored or {}))
    except ValidationError:
        return None


def _with(pod: Pod, recorded: RecordedPods | None) -> Pod:
    return replace(pod, registered=True) if recorded is None or recorded.has(pod) else pod
