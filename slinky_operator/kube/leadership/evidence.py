"""Whether the Lease of another release is to be believed: any user may write such a Lease in a namespace of theirs.

It is believed where it lies in this release's own namespace, where who may write it may write this release's Lease too;
where the settings name it; and where its ServiceAccount, of the same namespace, has the rights of an operator in the
namespaces that it claims, of which the API server is asked. So a Lease can hold up this release in a namespace only if
somebody who decides on rights there has given them away.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from typing import Any, Final

from slinky_operator.kube import errors
from slinky_operator.kube.leadership.scope import Release, Shared
from slinky_operator.kube.objects import Object
from slinky_operator.kube.ports import Creator
from slinky_operator.kube.resources import LOCAL_SUBJECT_ACCESS_REVIEWS, NODESETS, SUBJECT_ACCESS_REVIEWS, Resource

logger = logging.getLogger(__name__)

VALID_S: Final = 300.0
"""Seconds for which an answer holds."""

MANY: Final = 50
"""Questions in one look, whatever Leases claim; what is not asked is not believed, until the next look."""

KEPT: Final = 2000
"""Answers that are kept."""


class Evidence:
    """Answers about rights.

    Parameters
    ----------
    kube
        Not kept back by a fence: nothing is stored by such a question.
    everywhere
        Whether this release serves all namespaces, and may ask about any.
    home
        Namespace of this release's Lease.
    named
        `<namespace>/<name>` of Leases that the settings name.
    clock
        Monotonic seconds.
    """

    def __init__(
        self, kube: Creator, *, everywhere: bool, home: str, named: Collection[str], clock: Callable[[], float]
    ) -> None:
        self._kube = kube
        self._everywhere = everywhere
        self._home = home
        self._named = frozenset(named)
        self._clock = clock
        self._answers: dict[tuple[str, str], tuple[float, bool]] = {}
        self._left = 0

    def begin(self) -> None:
        """Begin a look."""
        self._left = MANY
        if len(self._answers) > KEPT:
            self._answers.clear()

    async def believed(self, other: Release, claim: Shared) -> Shared:
        """What of a claim is believed.

        Raises
        ------
        KubeError
            The API server has not answered.
        """
        if other.namespace == self._home or other.title in self._named:
            return claim
        if not other.service_account:
            return Shared(everything=False)
        user = f"system:serviceaccount:{other.namespace}:{other.service_account}"
        if not claim.namespaces:
            return Shared(everything=await self._may(user, other.namespace, ""))
        found = {
            namespace for namespace in sorted(claim.namespaces) if await self._may(user, other.namespace, namespace)
        }
        return Shared(everything=claim.everything and found == claim.namespaces, namespaces=frozenset(found))

    async def _may(self, user: str, of: str, where: str) -> bool:
        known = self._answers.get((user, where))
        if known is not None and self._clock() - known[0] <= VALID_S:
            return known[1]
        if self._left <= 0:
            return False
        self._left -= 1
        asked: dict[str, Any] = {"verb": "patch", "group": NODESETS.group, "resource": NODESETS.plural}
        spec = {
            "user": user,
            "groups": ["system:serviceaccounts", f"system:serviceaccounts:{of}", "system:authenticated"],
            "resourceAttributes": {**asked, "subresource": "status", "namespace": where},
        }
        try:
            if self._everywhere:
                answer = await self._kube.create(SUBJECT_ACCESS_REVIEWS, _review(SUBJECT_ACCESS_REVIEWS, spec))
            else:
                body = {**_review(LOCAL_SUBJECT_ACCESS_REVIEWS, spec), "metadata": {"namespace": where}}
                answer = await self._kube.create(LOCAL_SUBJECT_ACCESS_REVIEWS, body, where)
        except errors.Forbidden:
            logger.warning("may not ask which rights %s has, so its Lease is not believed", user)
            allowed = False
        else:
            allowed = bool((answer.get("status") or {}).get("allowed"))
        self._answers[user, where] = self._clock(), allowed
        return allowed


def _review(resource: Resource, spec: Object) -> Object:
    return {"apiVersion": resource.api_version, "kind": resource.kind, "spec": spec}
