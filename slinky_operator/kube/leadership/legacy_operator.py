"""Waits until no other operator for the same kinds is running: two of them would undo each other's drains and pods.

Slinky's own operator is recognized by the Lease of its replicas. While that is being renewed, this process writes only
an Event on the Lease. It is checked once, before the first write; if this process may not list Leases, or that operator
runs without leader election, it cannot be noticed, which the documentation says.

A user who may write Leases in some namespace must not be able to block this operator. So a Lease counts only in the
namespaces in which that operator may run, as named in the settings; one elsewhere is only logged. And only observed
changes count, by the clock of this process: the times in the Lease are not trusted.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from typing import Any, Final

from slinky_operator.kube import errors
from slinky_operator.kube.objects import Object
from slinky_operator.kube.ports import Lister
from slinky_operator.kube.resources import LEASES

logger = logging.getLogger(__name__)

LOOK_EVERY: Final = 5.0
"""Seconds between two looks at a Lease that is held."""

LONGEST_PAUSE: Final = 15.0
"""Seconds between two looks at most while the API server does not answer."""

SHORTEST: Final = 15.0
"""Seconds for which a Lease must not have changed to count as given up, at least; what it says itself counts too."""

LONGEST: Final = 60.0
"""The same at most, whatever the Lease says."""

MARGIN: Final = 5.0
"""Seconds that a renewal may come late."""

SHOWN: Final = 5
"""Namespaces named in a line."""


class Observed:
    """Leases, and when each was last seen to change.

    Parameters
    ----------
    clock
        Seconds that are never set back.
    is_free
        Whether a Lease without a holder is free at once; if not, it counts like one with a holder.
    """

    def __init__(self, clock: Callable[[], float], *, is_free: bool = True) -> None:
        self._clock = clock
        self._is_free = is_free
        self._seen: dict[str, tuple[tuple[Any, ...], float, bool]] = {}

    def look(self, lease: Object) -> bool | None:
        """Whether somebody holds a Lease, by what was seen of it so far; `None` while that cannot be said yet."""
        spec: dict[str, Any] = lease.get("spec") or {}
        uid = lease["metadata"].get("uid") or ""
        if self._is_free and not spec.get("holderIdentity"):
            self._seen.pop(uid, None)
            return False
        state = tuple(spec.get(field) for field in ("holderIdentity", "acquireTime", "renewTime", "leaseTransitions"))
        before, since, renewed = self._seen.get(uid, (state, self._clock(), False))
        if state != before:
            since, renewed = self._clock(), True
        self._seen[uid] = state, since, renewed
        lasts = min(max(float(spec.get("leaseDurationSeconds") or 0.0), SHORTEST), LONGEST)
        if self._clock() - since > lasts + MARGIN:
            return False
        return True if renewed else None

    def forget(self) -> None:
        """Begin again: for a while nobody could have been seen."""
        self._seen.clear()


async def until_alone(
    kube: Lister,
    name: str,
    namespaces: Sequence[str],
    homes: Collection[str],
    tell: Callable[[Object, str], None],
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> None:
    """Return once nobody is seen to renew a Lease of this name.

    Parameters
    ----------
    kube
        Where to look.
    name
        Name of the Lease.
    namespaces
        Which to look at; none for all.
    homes
        Those in which the other operator may be.
    tell
        Called with the Lease and the words for an Event, whenever one is found held.
    """
    observed = Observed(clock)
    lines = _Lines()
    failures = 0
    while True:
        try:
            found = await _found(kube, name, namespaces, lines)
        except errors.KubeError as error:
            # Without an answer, the other operator may be running.
            failures += 1
            observed.forget()
            lines.say(f"cannot look for another operator yet: {error}", errors.level_of(error))
            pause = min(LOOK_EVERY * 2.0 ** min(failures - 1, 10), LONGEST_PAUSE)
            await sleep(max(pause * random.uniform(0.5, 1.0), error.retry_after or 0.0))  # noqa: S311 - jitter
            continue
        failures = 0
        _tell_strangers(name, [lease for lease in found if _namespace(lease) not in homes], homes, lines)
        waiting = False
        for lease in found:
            held = _namespace(lease) in homes and observed.look(lease)
            if held is False:
                continue
            waiting = True
            where = f"Lease {_namespace(lease)}/{name}"
            holder = str(lease["spec"]["holderIdentity"])[:100]
            if held is None:
                lines.say(f"{holder} holds {where}: it is watched for a while whether that is still renewed")
                continue
            words = (
                f"{holder} renews {where}: another operator is at work on the same objects. "
                "Nothing is written until it has ended"
            )
            lines.say(words)
            tell(lease, words)
        if not waiting:
            return
        await sleep(LOOK_EVERY)


class _Lines:
    """Says each thing once."""

    def __init__(self) -> None:
        self._said: set[str] = set()

    def say(self, words: str, level: int = logging.WARNING) -> None:
        logger.log(logging.DEBUG if words in self._said else level, words)
        self._said.add(words)


def _namespace(lease: Object) -> str:
    return str(lease["metadata"].get("namespace") or "")


def _tell_strangers(name: str, leases: Iterable[Object], homes: Collection[str], lines: _Lines) -> None:
    found = sorted(_namespace(lease) for lease in leases if (lease.get("spec") or {}).get("holderIdentity"))
    if found:
        shown = ", ".join(found[:SHOWN]) + (f" and {len(found) - SHOWN} more" if len(found) > SHOWN else "")
        lines.say(
            f"Leases {name} in namespaces {shown} are not waited for: Slinky's operator is looked for in "
            f"{', '.join(sorted(homes))} (--slinky-namespaces). If it runs there, end it"
        )


async def _found(kube: Lister, name: str, namespaces: Sequence[str], lines: _Lines) -> list[Object]:
    found: list[Object] = []
    everywhere: Sequence[str | None] = [None]
    for namespace in namespaces or everywhere:
        try:
            found += [one async for one in kube.each(LEASES, namespace, field_selector=f"metadata.name={name}")]
        except errors.Forbidden as error:
            lines.say(f"cannot look for another operator: {error}")
    return found
