"""The objects that hold groups together, read one by one, and not again for a while."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from slinky_operator.bridge.pods.model import membership
from slinky_operator.bridge.pods.model.group_owners import RESOURCES, Owner, read_owner
from slinky_operator.bridge.pods.model.membership import GroupKey
from slinky_operator.bridge.pods.model.snapshot import Away, Gone, Snapshot
from slinky_operator.kube import errors
from slinky_operator.kube.ports import Getter

REMEMBERED: Final = 8192
"""Objects that are remembered, the last ones."""

READ_S: Final = 5.0
"""Seconds for which what was read counts."""


class Owners:
    """Reads the objects that hold groups together.

    Parameters
    ----------
    kube
        Reads them.
    clock
        Monotonic seconds.
    """

    def __init__(self, kube: Getter, clock: Callable[[], float]) -> None:
        self._kube = kube
        self._clock = clock
        self._owners: OrderedDict[tuple[str, str], tuple[float, Owner | Gone | Away]] = OrderedDict()

    def forget(self, namespace: str, key: GroupKey) -> None:
        """Forget a group."""
        _ = self._owners.pop((namespace, str(key)), None)

    async def read(self, snapshot: Snapshot) -> Owner | Gone | Away:
        """What is known of the object.

        Raises
        ------
        KubeError
            The API server failed.
        """
        where, now = (snapshot.namespace, str(snapshot.key)), self._clock()
        known = self._owners.get(where)
        if known is not None and now - known[0] < READ_S:
            return known[1]
        found = await self._ask(snapshot)
        self._owners[where] = now, found
        self._owners.move_to_end(where)
        while len(self._owners) > REMEMBERED:
            _ = self._owners.popitem(last=False)
        return found

    async def _ask(self, snapshot: Snapshot) -> Owner | Gone | Away:
        key, resource = snapshot.key, RESOURCES[snapshot.key.kind]
        pod = snapshot.members[0].obj if snapshot.members else None
        name = membership.owner_name(pod, key) if pod is not None else ""
        for job in snapshot.jobs:
            references = job.obj["metadata"].get("ownerReferences") or ()
            name = name or next((str(one.get("name")) for one in references if one.get("kind") == key.kind), "")
        if not name:
            return Gone()
        asked = membership.asked_kind(pod) if pod is not None else ""
        sizes = (pod["metadata"].get("annotations") or {}) if pod is not None else {}
        try:
            obj = await self._kube.get(resource, name, snapshot.namespace)
        except (errors.NotFound, ValueError):
            # Pods name some by a label, which may be no name.
            return Gone()
        except errors.Forbidden as error:
            return Away("Refused", f"the operator may not read {resource} {name}: {error.message}")
        return read_owner(key, obj, asked, sizes) or Gone()
