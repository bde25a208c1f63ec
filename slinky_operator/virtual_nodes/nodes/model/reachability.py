"""Whether the API server reaches the kubelet API, by what it answers when it is asked to go there. Pure.

It connects to the address of the pod for `pods/proxy` as it does for `kubectl logs` on a virtual Node. It shows no
client certificate there and verifies none: what is found out is the way, not who may read output.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from slinky_api.conditions import Reason
from slinky_api.v1alpha1.cluster.status import KubeletApiStatus
from slinky_operator.kube import errors
from slinky_operator.kube.objects import Object
from slinky_operator.reconcile.text import cut
from slinky_operator.virtual_nodes.arrival import FIELD

NOT_REACHED: Final = "error trying to reach service: "
"""Begins the message of the API server if a connection of its own fails, with the status 503
(k8s.io/apimachinery/pkg/util/proxy/transport.go)."""

OTHER: Final = "something else than the operator answers there"

LONGEST: Final = 400
"""Characters of what the API server says."""


@dataclass(frozen=True, slots=True)
class Way:
    """The way that is asked about.

    Parameters
    ----------
    namespace, pod
        The operator's own pod.
    address, port
        Where virtual Nodes say that their kubelet is.
    mark
        The mark of this process.
    """

    namespace: str
    pod: str
    address: str
    port: int
    mark: str

    @property
    def end(self) -> str:
        """Address and port."""
        return f"[{self.address}]:{self.port}" if ":" in self.address else f"{self.address}:{self.port}"


def verdict(way: Way, answer: Object | errors.KubeError, patience: float) -> KubeletApiStatus | None:
    """What follows from an answer; None if nothing does: what was known before still counts.

    Parameters
    ----------
    answer
        The object that came back, or why none did.
    patience
        Seconds after which an answer was not waited for any longer: more than the API server gives a connection.
    """
    found: KubeletApiStatus | None = None
    match answer:
        case errors.Forbidden():
            told = (
                f"the operator may not ask ({_said(answer)}). The chart slurm-virtual-nodes gives the right, get on "
                f"pods/proxy in namespace {way.namespace}"
            )
            found = _unknown(way, Reason.FORBIDDEN, told)
        case errors.NotFound() | errors.BadRequest():
            told = f"asked by the name of the operator's pod, {way.namespace}/{way.pod}, it answers: {_said(answer)}"
            found = _unknown(way, Reason.REQUEST_REFUSED, told)
        case errors.Unavailable(status=0) if answer.maybe_done and isinstance(answer.__cause__, TimeoutError):
            found = _failed(way, f"no answer within {patience:.0f} s")
        case errors.Unavailable() if answer.status and answer.message.startswith(NOT_REACHED):
            found = _failed(way, cut(answer.message.removeprefix(NOT_REACHED), LONGEST))
        case errors.TooLong() | errors.Unavailable(__cause__=ValueError()):
            found = _failed(way, OTHER)
        case errors.KubeError():
            pass
        case _ if answer.get(FIELD) == way.mark:
            found = KubeletApiStatus(reachable=True, reason=str(Reason.AS_EXPECTED))
        case _:
            found = _failed(way, OTHER)
    return found


def _failed(way: Way, why: str) -> KubeletApiStatus:
    told = (
        f"the API server does not reach {way.end}, the operator's pod {way.namespace}/{way.pod}: {why}. kubectl logs "
        "of pods on virtual Nodes fails; their jobs run on. Let the control plane open TCP connections to port "
        f"{way.port} of the operator's pods: firewalls between both, and NetworkPolicies of namespace {way.namespace}"
    )
    return KubeletApiStatus(reachable=False, reason=str(Reason.KUBELET_API_UNREACHABLE), message=told)


def _unknown(way: Way, reason: Reason, told: str) -> KubeletApiStatus:
    return KubeletApiStatus(
        reason=str(reason), message=f"whether the API server reaches {way.end} is not known: {told}"
    )


def _said(error: errors.KubeError) -> str:
    return cut(error.message, LONGEST)
