"""Waits until no other operator for the same kinds is at work: two of them would undo each other's drains and pods.

Slinky's own operator is known by the Lease its replicas share. As long as somebody renews that, nothing is written
here but an Event on the Lease. It is looked for before the first write and not again; where this process may not list
Leases, or that operator runs with no election, it cannot be noticed, which the documents say.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Protocol

from slinky_operator.kube import errors
from slinky_operator.kube.objects import Listing, Object
from slinky_operator.kube.resources import LEASES, Resource

logger = logging.getLogger(__name__)

LOOK_EVERY: Final = 5.0
"""Seconds between two looks at a Lease that is held."""

SKEW: Final = timedelta(seconds=60)
"""How far two machines' clocks may be apart."""

_DURATION: Final = 15
"""Seconds a Lease holds that does not say."""


class Lister(Protocol):
    """What is asked of the API server."""

    async def list(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        label_selector: str | None = None,
        field_selector: str | None = None,
    ) -> Listing:
        """List a kind."""
        ...


def is_held(lease: Object, now: datetime) -> bool:
    """Whether somebody renews a Lease, by its own times."""
    spec: dict[str, Any] = lease.get("spec") or {}
    renewed = spec.get("renewTime") or spec.get("acquireTime")
    if not spec.get("holderIdentity") or not renewed:
        return False
    lasts = timedelta(seconds=int(spec.get("leaseDurationSeconds") or _DURATION))
    return now - datetime.fromisoformat(str(renewed)) < lasts + SKEW


async def until_alone(
    kube: Lister,
    name: str,
    namespaces: Sequence[str],
    tell: Callable[[Object, str], None],
    *,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> None:
    """Return once nobody renews a Lease of this name.

    Parameters
    ----------
    kube
        Where to look.
    name
        Name of the Lease.
    namespaces
        Where it may be; none for everywhere.
    tell
        Called with the Lease and the words for an Event, whenever one is found held.
    """
    while True:
        held = [lease for lease in await _found(kube, name, namespaces) if is_held(lease, now())]
        if not held:
            return
        for lease in held:
            metadata = lease["metadata"]
            words = (
                f"{lease['spec']['holderIdentity']} renews Lease {metadata.get('namespace')}/{name}: another operator "
                "is at work on the same objects. Nothing is written until it has ended"
            )
            logger.warning("%s", words)
            tell(lease, words)
        await sleep(LOOK_EVERY)


async def _found(kube: Lister, name: str, namespaces: Sequence[str]) -> list[Object]:
    found: list[Object] = []
    everywhere: Sequence[str | None] = [None]
    for namespace in namespaces or everywhere:
        try:
            listing = await kube.list(LEASES, namespace, field_selector=f"metadata.name={name}")
        except errors.Forbidden as error:
            logger.warning("cannot look for another operator: %s", error)
            continue
        found += listing.items
    return found
