"""Keeps two releases of this operator out of each other's namespaces: both would lead, and write against each other.

The Lease of a release says which namespaces it is to serve, and whether it works already. Who has taken its own Lease
looks at those of others before it begins. It waits for every release that works, and for every older one that is about
to begin; then it says on its Lease that it works, and looks again: if another one says so too by then, it steps back.
Of two that begin together each writes before it looks, so the later one sees the other. A release that works goes on.

Where another release serves only some of the namespaces, this one works and leaves those out, which its Lease says. It
takes them over in the same order, once the other one has ended, or is kept from working by a third.

As for Slinky's operator (`legacy_operator`), only observed changes count, never the times in a Lease, and a Lease that
anyone may have written counts for nothing (`evidence`). Unlike there, a Lease that was given back counts for a while: a
release that is being upgraded takes it again at once.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Final, Protocol

from slinky_api import labels
from slinky_operator.kube import errors
from slinky_operator.kube.leadership.evidence import Evidence
from slinky_operator.kube.leadership.legacy_operator import LOOK_EVERY, Observed
from slinky_operator.kube.leadership.scope import Release, Shared, age, release_of, shared
from slinky_operator.kube.objects import Object
from slinky_operator.kube.ports import Creator, Getter, Lister
from slinky_operator.kube.resources import LEASES

logger = logging.getLogger(__name__)

WORKING_LOOK_EVERY: Final = 30.0
"""Seconds between two looks of a release that works."""

PATIENCE: Final = 3
"""Looks in which a release that has namespaces left to it may not work yet."""

MANY: Final = 300
"""Leases of other releases that are looked at."""

OF_A_NAMESPACE: Final = 3
"""The same for one namespace: any user may write Leases there."""

SELECTOR: Final = f"{labels.LABEL_OPERATOR}=true"


class Kube(Creator, Getter, Lister, Protocol):
    """What is used of `kube.client.KubeClient`."""


class OwnLease(Protocol):
    """What is used of `lease.Elector`."""

    leading: asyncio.Event
    lapsed: asyncio.Event
    lapses: int

    @property
    def lease(self) -> Object | None:
        """The Lease."""
        ...

    async def announce(self, annotations: Mapping[str, str | None]) -> None:
        """Write annotations on it."""
        ...

    def resume(self) -> None:
        """Let writes leave again after a pause."""
        ...


class Releases:
    """The release of this process among others.

    Parameters
    ----------
    kube
        Not kept back by the fence: it only reads and asks.
    own
        This release's Lease.
    home, name
        Where that Lease is.
    namespaces
        Those that this release serves; none for all.
    named
        `<namespace>/<name>` of Leases to look at beside those that can be listed.
    tell
        Called with a Lease and the words for an Event.
    """

    def __init__(
        self,
        kube: Kube,
        own: OwnLease,
        *,
        home: str,
        name: str,
        namespaces: Sequence[str],
        named: Collection[str],
        tell: Callable[[Object, str], None],
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.begun = asyncio.Event()
        """Set while this release works."""
        self.elsewhere: frozenset[str] = frozenset()
        """Namespaces that another release serves: nothing is written there."""
        self._kube = kube
        self._own = own
        self._home = home
        self._name = name
        self._namespaces = tuple(namespaces)
        self._named = tuple(sorted(set(named) - {f"{home}/{name}"}))
        self._tell = tell
        self._sleep = sleep
        self._observed = Observed(clock, is_free=False)
        self._evidence = Evidence(kube, everywhere=not namespaces, home=home, named=named, clock=clock)
        self._said: set[str] = set()
        self._waiting: dict[str, int] = {}
        self._problem: str | None = "not yet"

    def problem(self) -> str | None:
        """Why this release does not work, for `/readyz`: replicas on standby are ready all the same."""
        return self._problem

    async def run(self) -> None:
        """Wait for one's turn, then look after those that come and go, on and on."""
        while True:
            await self._before_leading()
            if self._own.lapsed.is_set():
                await self._announce(frozenset(), works=False)
            while not await self._begin():
                # Two that step back for each other must not do so again at the same moment.
                await self._sleep(LOOK_EVERY * random.uniform(0.5, 1.5))  # noqa: S311 - jitter
            while not await self._has_lapsed(WORKING_LOOK_EVERY * random.uniform(0.8, 1.2)):  # noqa: S311 - jitter
                await self._go_on()
            # Others have seen a Lease that is not renewed, and may have begun.
            self.begun.clear()
            self._problem = "not yet"

    async def _has_lapsed(self, seconds: float) -> bool:
        """Wait for so long, or until the Lease has lapsed; tells whether it has."""
        await self._until(self._own.lapsed, seconds)
        return self._own.lapsed.is_set()

    async def _until(self, event: asyncio.Event, seconds: float) -> None:
        """Wait for an event, but not longer than for so many seconds."""
        waiting = asyncio.ensure_future(event.wait())
        pause = asyncio.ensure_future(self._sleep(seconds))
        try:
            await asyncio.wait((waiting, pause), return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
            pause.cancel()

    async def _before_leading(self) -> None:
        while not self._own.leading.is_set():
            found = await self._look()
            ahead = None if found is None else _first(found, lambda one: one.works)
            self._problem = "not yet" if found is None else None if ahead is None else _words(*ahead)
            if ahead is not None:
                self._say(_words(*ahead))
            await self._until(self._own.leading, LOOK_EVERY)

    async def _begin(self) -> bool:
        """Begin, unless another release goes first."""
        lapses = self._own.lapses
        found = await self._look()
        if found is None or self._waits_for(found):
            return False
        left = _left(found, self._goes_first)
        await self._announce(left, works=True)
        found = await self._look()
        if found is None or self._waits_for(found):
            await self._announce(frozenset(), works=False)
            return False
        more = left | _left(found, self._goes_first)
        if more != left:
            await self._announce(more, works=True)
        if self._own.lapses != lapses:
            # What was looked at may be from before the pause.
            await self._announce(frozenset(), works=False)
            return False
        self._leave(more)
        self._problem = None
        self.begun.set()
        self._own.resume()
        return True

    async def _go_on(self) -> None:
        """Take over namespaces that nobody else serves any more; others that come must wait themselves."""
        found = await self._look()
        if found is None:
            return
        for other, what in found:
            if other.works and other.renews and (what.everything or not what.namespaces <= self.elsewhere):
                words = (
                    f"{other.holder} (Lease {other.title}) works on {what} too, beside this release: they "
                    "write against each other. Uninstall one of both, or give them different watchNamespaces"
                )
                self._say(words)
                self._tell(other.lease, words)
        left = self._still_left(found, self._is_awaited)
        if left == self.elsewhere:
            return
        # Said before it is done: a release that comes back either sees it and waits, or is seen by the second look.
        await self._announce(left, works=True)
        again = await self._look()
        kept = self.elsewhere if again is None else left | self._still_left(again, lambda one: one.works)
        if kept != left:
            await self._announce(kept, works=True)
        self._leave(kept)

    def _still_left(self, found: Sequence[tuple[Release, Shared]], counts: Callable[[Release], bool]) -> frozenset[str]:
        """Namespaces that this release leaves out, and that one of those that count serves."""
        serving = [what for one, what in found if counts(one)]
        if any(what.everything and not what.namespaces for what in serving):
            return self.elsewhere
        return self.elsewhere.intersection(frozenset().union(*(what.namespaces for what in serving)))

    def _leave(self, namespaces: frozenset[str]) -> None:
        for one in sorted(self.elsewhere - namespaces):
            logger.info("namespace %s is served by no other release any more: this one serves it", one)
        self.elsewhere = namespaces

    async def _announce(self, left: frozenset[str], *, works: bool) -> None:
        await self._own.announce(
            {
                labels.ANNOTATION_WORKS: "true" if works else None,
                labels.ANNOTATION_LEAVES: ",".join(sorted(left)) or None,
            }
        )

    def _goes_first(self, other: Release) -> bool:
        own = self._own.lease
        # Without an answer about one's own Lease the other one goes first.
        return other.works or own is None or other.age < age(own)

    def _is_awaited(self, other: Release) -> bool:
        """Whether namespaces are still left to a release: one that was upgraded works again soon."""
        waits = 0 if other.works else self._waiting.get(other.title, 0) + 1
        self._waiting = {**self._waiting, other.title: waits} if len(self._waiting) < MANY else {}
        return waits <= PATIENCE

    def _waits_for(self, found: Sequence[tuple[Release, Shared]]) -> bool:
        ahead = _first(found, self._goes_first)
        if ahead is None:
            for other, what in found:
                if self._goes_first(other):
                    self._say(
                        f"{other.holder} (Lease {other.title}) serves {what}: this release leaves that out "
                        "until the other one has ended"
                    )
            return False
        self._problem = _words(*ahead)
        self._say(self._problem)
        if ahead[0].renews:
            self._tell(ahead[0].lease, self._problem)
        return True

    def _say(self, words: str, level: int = logging.WARNING) -> None:
        logger.log(logging.DEBUG if words in self._said else level, words)
        if len(self._said) < MANY:
            self._said.add(words)

    async def _look(self) -> list[tuple[Release, Shared]] | None:
        """Other releases that are alive, with what they share with this one; `None` without an answer."""
        try:
            return await self._others()
        except errors.KubeError as error:
            self._observed.forget()
            self._say(f"cannot look for other releases of this operator yet: {error}", errors.level_of(error))
            await self._sleep(LOOK_EVERY * random.uniform(0.2, 0.5))  # noqa: S311 - jitter
            return None

    async def _others(self) -> list[tuple[Release, Shared]]:
        self._evidence.begin()
        found: list[tuple[Release, Shared]] = []
        for lease in await self._leases():
            alive = self._observed.look(lease)
            other = release_of(lease, renews=alive is True)
            claim = shared(self._namespaces, other)
            if not claim or alive is False:
                continue
            believed = await self._evidence.believed(other, claim)
            if believed:
                found.append((other, believed))
            else:
                self._say(
                    f"Lease {other.title} says that a release of this operator serves {claim}. It is not waited for, "
                    "since its ServiceAccount may not work there. If a release runs there, uninstall one of both"
                )
        return found

    async def _leases(self) -> list[Object]:
        places: Sequence[str | None] = [*dict.fromkeys((self._home, *self._namespaces))] if self._namespaces else [None]
        found: dict[str, Object] = {}
        counts: dict[str, int] = {}
        for place in places:
            try:
                async for one in self._kube.each(LEASES, place, label_selector=SELECTOR):
                    namespace = one["metadata"]["namespace"]
                    counts[namespace] = counts.get(namespace, 0) + 1
                    if counts[namespace] <= OF_A_NAMESPACE or namespace == self._home:
                        found[f"{namespace}/{one['metadata']['name']}"] = one
            except errors.Forbidden:
                self._say(f"may not list Leases in {place or 'all namespaces'}: other releases are not seen there")
        for title in self._named:
            namespace, _, name = title.partition("/")
            if title in found or not self._namespaces:
                continue
            try:
                found[title] = await self._kube.get(LEASES, name, namespace)
            except errors.NotFound:
                # No release runs there, or none that has ever led: the usual case, and nothing to report.
                continue
            except errors.Forbidden:
                self._say(f"may not read Lease {title}: no release there shows it, or none is there", logging.INFO)
        found.pop(f"{self._home}/{self._name}", None)
        return [found[title] for title in sorted(found)[:MANY]]


def _first(
    found: Sequence[tuple[Release, Shared]], goes_first: Callable[[Release], bool]
) -> tuple[Release, Shared] | None:
    """One that serves all of this release's namespaces, and goes first."""
    return next(((one, what) for one, what in found if what.everything and goes_first(one)), None)


def _left(found: Sequence[tuple[Release, Shared]], goes_first: Callable[[Release], bool]) -> frozenset[str]:
    """Namespaces of those that serve some, and go first."""
    return frozenset().union(*(what.namespaces for one, what in found if not what.everything and goes_first(one)))


def _words(other: Release, what: Shared) -> str:
    if not other.renews:
        return (
            f"Lease {other.title} (holder: {other.holder}) says that a release of this operator serves {what}: it is "
            "watched for a while whether it is still renewed"
        )
    return (
        f"{other.holder} (Lease {other.title}) serves {what}: two releases of this operator must not serve the same "
        "namespace. Nothing is written until that one has ended. Uninstall one of both, or give them different "
        "watchNamespaces"
    )
