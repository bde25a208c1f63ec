"""Leader election by a coordination.k8s.io Lease, whose renewals keep the write fence open.

One process at a time holds the Lease and renews it. A candidate never compares clocks with another machine: it takes
over a lease when, by its own clock, the lease has not changed for its whole duration.

The holder counts from the moment *before* it sends a renewal. A candidate starts counting when it sees the renewal,
which is later. So the holder's deadline (`renew_deadline` after sending) always comes before a candidate's (the longer
`duration` after seeing it), whatever the network does in between, and the fence closes before another process can
lead. Every write of the Lease carries the version it was read with, so two candidates cannot both win.

A renewal that is not answered is sent again beside the first one, over another connection, so that one that hangs does
not use up the deadline. The version makes the repetition harmless.

Past the deadline the process stands by: the fence is closed, the process goes on asking, and its caches go on. If its
own name is still in the Lease, nobody has led in between, and it leads again with what it knows. So an API server that
is slow for a while costs a pause, and no restart, whose lists it would have to answer too. The fence stays closed until
`resume`: other releases may have begun meanwhile, and the caller looks at them first.

`Elector.run` raises `LeadershipLost`, and the process is expected to exit, when its state may be out of date: somebody
else holds the Lease or has deleted it, the process stood still itself, or the pause was long.

All this runs on the event loop of the operator and not in a thread: a process whose loop hangs must lose its Lease.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, ClassVar, Final

from typing_extensions import override

from slinky_api.labels import CLUSTER_PREFIX
from slinky_operator.kube import errors
from slinky_operator.kube.client import KubeClient
from slinky_operator.kube.leadership.fence import Clock, DeadlineFence, boottime
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import LEASES

logger = logging.getLogger(__name__)

HEDGES: Final = 4
"""In how many parts of the deadline a renewal without an answer is sent again."""

STANDBY: Final = 4.0
"""For how many durations of the Lease a process that cannot renew it stands by before it ends."""

RELEASE_TIMEOUT: Final = 3.0
"""Seconds to try to give the Lease back; if that fails, others wait for its end."""


class LeadershipLost(Exception):
    """Somebody else may have led meanwhile, or this process stood still: an end that is meant to be, and says why."""

    expected: ClassVar[bool] = True
    """Whether this happens in healthy operation and needs no stack trace in the log."""

    @override
    def __str__(self) -> str:
        return f"leadership lost: {super().__str__()}"


class Elector:
    """A candidate for, and then the holder of, one Lease.

    Parameters
    ----------
    client
        A client of its own with an open fence: the Lease is what the fence hangs on, and renewals must not queue
        behind other requests.
    identity
        Unique per process, not per host name: a restarted pod is another candidate.
    fence
        Held open while this process leads.
    duration
        Seconds after which others may take the Lease.
    renew_deadline
        Seconds after the last successful renewal at which this process stops writing; less than `duration`. The
        difference is the margin for requests already on their way.
    retry_period
        Seconds between attempts, give or take a fifth.
    clock
        Seconds of the clock that the fence reads.
    now
        Wall clock, for the times written into the Lease, which only people read.
    labels, annotations
        What the Lease says about this release all the time.
    """

    def __init__(
        self,
        client: KubeClient,
        *,
        namespace: str,
        name: str,
        identity: str,
        fence: DeadlineFence,
        labels: Mapping[str, str] = MappingProxyType({}),
        annotations: Mapping[str, str] = MappingProxyType({}),
        duration: float = 15.0,
        renew_deadline: float = 10.0,
        retry_period: float = 2.0,
        clock: Clock = boottime,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        rng: random.Random | None = None,
    ) -> None:
        if not retry_period < renew_deadline < duration:
            raise ValueError(
                f"the retry period ({retry_period} s) must be shorter than the renew deadline ({renew_deadline} s), "
                f"and that shorter than the lease ({duration} s)"
            )
        self.identity = identity
        self.leading = asyncio.Event()
        """Set while this process holds the Lease; not while it stands by."""
        self.lapsed = asyncio.Event()
        """Set when this process stands by, until `resume`."""
        self.lapses = 0
        """How often it has begun to stand by."""
        self._client = client
        self._namespace = namespace
        self._name = name
        self._fence = fence
        self._duration = duration
        self._renew_deadline = renew_deadline
        self._retry_period = retry_period
        self._clock = clock
        self._now = now
        self._rng = rng or random.Random()  # noqa: S311 - jitter
        self._lease: Object | None = None
        self._seen: tuple[Any, ...] = ()
        self._seen_at = 0.0
        self._renewed_at = 0.0
        self._lost = False
        self._last_error = ""
        self._told = ""
        self._labels = dict(labels)
        self._annotations = dict(annotations)
        self._news: dict[str, str | None] = {}
        self._hurry = asyncio.Event()
        self._sent = asyncio.Event()

    @property
    def lease(self) -> Object | None:
        """The Lease as it was last written; `None` where that is not known."""
        return self._lease

    async def announce(self, annotations: Mapping[str, str | None]) -> None:
        """Write annotations on the Lease, with the next renewal, which comes at once; return when they are there.

        Parameters
        ----------
        annotations
            With `None` for one that is to go. They stay as long as this process leads; for one caller at a time.
        """
        await self.leading.wait()
        self._news = {**self._news, **annotations}
        self._sent.clear()
        self._hurry.set()
        await self._sent.wait()

    async def run(self) -> None:
        """Become leader, then renew on and on.

        Raises
        ------
        LeadershipLost
            When this process may no longer act. It must end.
        """
        while not await self._try_acquire():  # noqa: ASYNC110 - what is waited for happens on another machine
            await asyncio.sleep(self._period())
        logger.info("became leader as %s", self.identity)
        self.leading.set()
        try:
            began = self._clock()
            while True:
                await self._rest(began)
                began = self._clock()
                await self._renew()
        except LeadershipLost:
            self._lost = True
            self._fence.close()
            self.leading.clear()
            raise

    def resume(self) -> None:
        """Let writes leave again after a pause; to be called while `leading` is set, once nobody else is in the way."""
        if self.leading.is_set():
            self.lapsed.clear()
            self._fence.resume()

    async def _rest(self, since: float) -> None:
        """Wait until the next renewal is due: at once after one that took long, whose time is half used up."""
        began = self._clock()
        period = max(0.0, since + self._period() - began)
        try:
            async with asyncio.timeout(period):
                await self._hurry.wait()
        except TimeoutError:
            pass  # the rest is over, as planned
        else:
            self._hurry.clear()
        self._check_awake(began, period)

    def _check_awake(self, began: float, planned: float) -> None:
        """Raise `LeadershipLost` if a wait took so much longer than planned that the process cannot have run."""
        now = self._clock()
        if now - began - planned > self._renew_deadline:
            raise LeadershipLost(f"not renewed for {now - self._renewed_at:.1f} s, in which this process stood still")

    async def release(self) -> None:
        """Close the fence and give the Lease back, so that a successor need not wait; never raises.

        Call it after the last write has been answered and `run` has been cancelled.
        """
        self._fence.close()
        if not self.leading.is_set() or self._lost:
            return
        try:
            async with asyncio.timeout(RELEASE_TIMEOUT):
                lease = await self._client.get(LEASES, self._name, self._namespace)
                if (lease.get("spec") or {}).get("holderIdentity") != self.identity:
                    return
                lease["spec"] |= {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": self._micro_time()}
                await self._client.replace(LEASES, lease)
        except (errors.KubeError, TimeoutError) as error:
            logger.warning("the lease could not be given back, it will run out: %s", _words(error))
        else:
            logger.info("gave leadership up")

    async def _try_acquire(self) -> bool:
        """Take the Lease if it is free; tells whether this process leads now."""
        try:
            async with asyncio.timeout(self._renew_deadline):
                try:
                    lease = await self._client.get(LEASES, self._name, self._namespace)
                except errors.NotFound:
                    started = self._clock()
                    lease = await self._client.create(LEASES, self._first())
                else:
                    if not self._is_free(lease):
                        return False
                    # Only a write counts: what was read may be older than any deadline.
                    started = self._clock()
                    lease = await self._client.replace(LEASES, self._taken_over(lease))
        except errors.Conflict:
            logger.debug("another candidate was faster")
            return False
        except (errors.KubeError, TimeoutError) as error:
            self._tell(f"cannot reach for the lease: {_words(error)}", errors.level_of(error))
            return False
        self._told = ""
        return self._renewed(lease, started)

    def _tell(self, words: str, level: int) -> None:
        """Say why the Lease cannot be had, once for each reason."""
        logger.log(logging.DEBUG if words == self._told else level, words)
        self._told = words

    def _first(self) -> Object:
        return {
            "apiVersion": LEASES.api_version,
            "kind": LEASES.kind,
            "metadata": self._about({"name": self._name, "namespace": self._namespace}),
            "spec": {**self._claim(), "acquireTime": self._micro_time(), "leaseTransitions": 0},
        }

    def _is_free(self, lease: Object) -> bool:
        """Whether nobody else holds the Lease, or its holder has not stirred for its whole duration."""
        spec = lease.get("spec") or {}
        holder = spec.get("holderIdentity")
        if not holder or holder == self.identity:
            # Ours already: the answer to an earlier write was lost.
            return True
        seen = (holder, spec.get("renewTime"), spec.get("leaseTransitions"), lease["metadata"]["resourceVersion"])
        if seen != self._seen:
            self._seen, self._seen_at = seen, self._clock()
        return self._clock() >= self._seen_at + float(spec.get("leaseDurationSeconds") or self._duration)

    def _taken_over(self, lease: Object) -> Object:
        spec = lease.get("spec") or {}
        if spec.get("holderIdentity") == self.identity:
            return {**lease, "metadata": self._about(lease["metadata"]), "spec": {**spec, **self._claim()}}
        transitions = int(spec.get("leaseTransitions") or 0) + 1
        taken = {**spec, **self._claim(), "acquireTime": self._micro_time(), "leaseTransitions": transitions}
        return {**lease, "metadata": self._about(lease["metadata"]), "spec": taken}

    async def _renew(self) -> None:
        """Renew once; without success stand by, and raise `LeadershipLost` when that has taken too long."""
        began = self._clock()
        self._check_pause(began)
        deadline = began + self._renew_deadline if self.lapsed.is_set() else self._renewed_at + self._renew_deadline
        sent: list[asyncio.Task[bool]] = []
        try:
            # What hangs is sent again beside it; what has failed after the usual rest.
            while (left := deadline - self._clock()) > 0 and not (sent and all(one.done() for one in sent)):
                sent.append(asyncio.create_task(self._attempt(), name="renewal of the Lease"))
                if await self._has_renewed(sent, min(left, self._renew_deadline / HEDGES)):
                    return
        finally:
            await _cancel(sent)
        # The state of the Lease is unknown: it is read again before the next attempt.
        self._lease = None
        if self._clock() >= self._renewed_at + self._renew_deadline:
            self._lapse()

    async def _has_renewed(self, sent: Sequence[asyncio.Task[bool]], wait: float) -> bool:
        """Whether one of these renewals succeeds within so many seconds; not so as soon as all have failed."""
        began = self._clock()
        pending = {one for one in sent if not one.done()}
        while pending and (left := began + wait - self._clock()) > 0:
            done, pending = await asyncio.wait(pending, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            if True in [one.result() for one in done]:
                return True
        self._check_awake(began, wait)
        return False

    def _check_pause(self, now: float) -> None:
        """Raise `LeadershipLost` if the last renewal was too long ago."""
        if now - self._renewed_at > STANDBY * self._duration:
            raise LeadershipLost(f"not renewed for {now - self._renewed_at:.1f} s{self._last_error}")

    def _lapse(self) -> None:
        """Stand by: say so once, and forget what was announced, since the next one to begin may be somebody else."""
        if not self.leading.is_set():
            return
        self._fence.suspend()
        self.leading.clear()
        self.lapsed.set()
        self.lapses += 1
        self._news = {}
        logger.warning(
            "the lease was not renewed for %.1f s%s: the operator writes nothing until it has renewed it",
            self._clock() - self._renewed_at,
            self._last_error,
        )

    async def _attempt(self) -> bool:
        """Send one renewal; tells whether it succeeded in time."""
        started = self._clock()
        news = self._news
        try:
            renewed = await self._rewritten()
            if renewed is None:
                lease = await self._client.get(LEASES, self._name, self._namespace)
                started, news = self._clock(), self._news
                renewed = await self._write(lease)
        except errors.NotFound as error:
            raise LeadershipLost("the lease was deleted") from error
        except (errors.KubeError, TimeoutError) as error:
            self._last_error = f" ({_words(error)})"
            logger.warning("cannot renew the lease: %s", _words(error))
            return False
        before = self._renewed_at
        if not self._renewed(renewed, started):
            return False
        if news is self._news:
            self._sent.set()
        if not self.leading.is_set():
            logger.info("leads again after %.1f s, in which no other replica led", started - before)
            self.leading.set()
        return True

    async def _rewritten(self) -> Object | None:
        """Renew the Lease as it was last written; `None` if that is not known, or not how it is."""
        if self._lease is None:
            return None
        try:
            return await self._write(self._lease)
        except errors.Conflict:
            # An earlier attempt without an answer, or somebody who labels it.
            return None

    async def _write(self, lease: Object) -> Object:
        """Write a renewal over the Lease as it was read."""
        holder = (lease.get("spec") or {}).get("holderIdentity")
        if holder != self.identity:
            raise LeadershipLost(f"the lease is held by {holder or 'nobody'}")
        about = self._about(lease["metadata"])
        body = {**lease, "metadata": about, "spec": {**lease["spec"], **self._claim()}}
        return await self._client.replace(LEASES, body)

    def _renewed(self, lease: Object, started: float) -> bool:
        """Note a successful write that was begun at `started`; tells whether it is still worth anything."""
        deadline = started + self._renew_deadline
        if self._clock() >= deadline:
            return False
        self._lease = lease
        self._renewed_at = started
        self._fence.extend(deadline)
        return True

    def _about(self, metadata: Object) -> Object:
        """Metadata with what the Lease says about this release; what another process has announced goes."""
        announced = {name: value for name, value in self._news.items() if value is not None}
        kept = {
            name: value
            for name, value in (metadata.get("annotations") or {}).items()
            if not name.startswith(CLUSTER_PREFIX)
        }
        annotations = {**kept, **self._annotations, **announced}
        return {**metadata, "labels": {**(metadata.get("labels") or {}), **self._labels}, "annotations": annotations}

    def _claim(self) -> Object:
        return {
            "holderIdentity": self.identity,
            # Whole seconds: rounding down would let others in before the fence closes.
            "leaseDurationSeconds": max(1, -int(-self._duration // 1)),
            "renewTime": self._micro_time(),
        }

    def _micro_time(self) -> str:
        return self._now().astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    def _period(self) -> float:
        return self._retry_period * self._rng.uniform(0.8, 1.2)


async def _cancel(attempts: Sequence[asyncio.Task[bool]]) -> None:
    """End renewals that nobody waits for any more; one that arrives nevertheless renews, or is refused as outdated."""
    for task in attempts:
        task.cancel()
    await asyncio.gather(*attempts, return_exceptions=True)


def _words(error: Exception) -> str:
    return str(error) or type(error).__name__
