"""Events on objects: what `kubectl describe` shows below them.

Core/v1 Events, because `kubectl describe` and `kubectl get events` print them with count and age. The recorder never
blocks and never raises: reconciliation continues without an Event.

Three rules keep the number of writes small:

- A repeated message about the same object raises the count of one Event, and the count is written only now and then.
- Many different messages for one reason (a scale-in naming 500 nodes) become one "combined" Event.
- Each object may cause a limited number of new Events (a token bucket that fills slowly).

Namespaces take turns: the Events of one with thousands of objects do not delay those of others.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from itertools import zip_longest
from typing import Any, Final

from slinky_operator.kube import errors
from slinky_operator.kube.client import KubeClient
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import EVENTS
from slinky_operator.kube.shared_memory import SharedMemory
from slinky_operator.runtime.logging import about
from slinky_operator.runtime.printable import printable_lines

logger = logging.getLogger(__name__)

REMEMBERED: Final = 4096
"""Events whose count can still be raised; the namespace with most of them forgets the least recently used."""

SAME_AGAIN_EVERY: Final = 30.0
"""Seconds between two writes of the same Event's count."""

COMBINE_AFTER: Final = 10
"""Different messages for one reason on one object before further ones are combined."""

COMBINE_WINDOW: Final = 600.0
"""Seconds after the last message at which the count of different messages is reset."""

BURST: Final = 25
"""New Events one object may cause at once."""

REFILL: Final = 60.0
"""Seconds for one further new Event."""

LONGEST_MESSAGE: Final = 1024
"""Characters the API server takes."""

ATTEMPTS: Final = 4

AT_ONCE: Final = 8
"""Events that are written side by side: the last ones of a process have to leave before it is killed."""

IN_A_ROW: Final = 64
"""Events after which it is looked again which are to be written; each namespace has had its turn by then."""


class EventType(StrEnum):
    """How `kubectl` colours it."""

    NORMAL = "Normal"
    WARNING = "Warning"


@dataclass(slots=True)
class _Entry:
    """One Event as it is written to the API."""

    name: str
    namespace: str
    involved: Object
    type: EventType
    reason: str
    message: str
    first: datetime
    last: datetime
    count: int = 0
    created: bool = False
    due: float = 0.0
    attempts: int = 0


@dataclass(slots=True)
class _Budget:
    """What one object may still cause."""

    tokens: float
    at: float
    messages: dict[tuple[str, str], tuple[float, set[str]]] = field(default_factory=dict)


class Recorder:
    """Writes Events in the background.

    Parameters
    ----------
    client
        Used for writing; its fence holds for Events too.
    component
        Shown in the column FROM.
    instance
        Which process it was.
    clock
        Seconds, never set back.
    now
        Wall clock, for the times in Events.
    observer
        Told kind, type and reason of everything that is reported, whether or not it becomes an Event; for metrics.
    """

    def __init__(
        self,
        client: KubeClient,
        *,
        component: str,
        instance: str,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        observer: Callable[[str, str, str], None] | None = None,
    ) -> None:
        self._observer = observer
        self._client = client
        self._component = component
        self._instance = instance
        self._clock = clock
        self._now = now
        self._entries: SharedMemory[tuple[str, ...], _Entry] = SharedMemory(REMEMBERED)
        self._budgets: SharedMemory[str, _Budget] = SharedMemory(REMEMBERED)
        self._dirty: dict[str, _Entry] = {}
        self._wake = asyncio.Event()
        self.dropped = 0
        """Events that were not written: too many for their object, or refused by the API server."""

    def normal(self, obj: Object, reason: str, message: str) -> None:
        """Tell that something happened as it should."""
        self.event(obj, EventType.NORMAL, reason, message)

    def warning(self, obj: Object, reason: str, message: str) -> None:
        """Tell that something needs a look."""
        self.event(obj, EventType.WARNING, reason, message)

    def event(self, obj: Object, kind: EventType, reason: str, message: str) -> None:
        """Tell something about an object; returns at once.

        Parameters
        ----------
        obj
            The object, with `apiVersion`, `kind` and `metadata`.
        reason
            One word in CamelCase.
        message
            A sentence; made printable, and cut to what the API server takes.
        """
        try:
            self._note(obj, kind, reason, printable_lines(message[:LONGEST_MESSAGE])[:LONGEST_MESSAGE])
        except Exception:
            # A malformed object must not end a pass that has real work to do.
            logger.exception("cannot make an event %s of %r", reason, message[:LONGEST_MESSAGE])

    async def run(self) -> None:
        """Write queued Events until cancelled."""
        while True:
            due = min((entry.due for entry in self._dirty.values()), default=None)
            self._wake.clear()
            try:
                async with asyncio.timeout(None if due is None else max(0.0, due - self._clock())):
                    await self._wake.wait()
            except TimeoutError:
                await self._write_due(IN_A_ROW)

    async def flush(self) -> None:
        """Write everything now; for the end of the process."""
        for entry in self._dirty.values():
            entry.due = 0.0
        await self._write_due()

    def _note(self, obj: Object, kind: EventType, reason: str, message: str) -> None:
        if self._observer is not None:
            self._observer(str(obj.get("kind") or ""), kind.value, str(reason))
        metadata = obj["metadata"]
        uid = metadata.get("uid") or ""
        owner = uid or f"{obj.get('kind')}/{metadata.get('namespace')}/{metadata['name']}"
        namespace = metadata.get("namespace") or ""
        budget = self._budget(namespace, owner)
        words = self._combined(budget, kind, reason, message)
        key = (owner, kind.value, reason, message if words == message else "")
        entry = self._entries.get(namespace, key)
        now = self._now()
        if entry is None:
            if budget.tokens < 1:
                self.dropped += 1
                logger.debug("too many events about %s: %s", owner, message)
                return
            budget.tokens -= 1
            stamp = hashlib.sha256(f"{key}{now.isoformat()}{self._instance}".encode()).hexdigest()[:16]
            entry = _Entry(
                name=f"{metadata['name'][:200]}.{stamp}",
                # Events about cluster-scoped objects live where kubectl looks for them.
                namespace=namespace or "default",
                involved=_reference(obj),
                type=kind,
                reason=reason,
                message=words,
                first=now,
                last=now,
            )
            self._entries.put(namespace, key, entry)
            level = logging.WARNING if kind is EventType.WARNING else logging.INFO
            with about(str(obj.get("kind") or ""), metadata.get("namespace"), metadata["name"]):
                logger.log(level, "%s: %s", reason, message)
        entry.count += 1
        entry.last = now
        entry.message = words[:LONGEST_MESSAGE]
        self._dirty[entry.name] = entry
        self._wake.set()

    def _budget(self, namespace: str, owner: str) -> _Budget:
        now = self._clock()
        budget = self._budgets.get(namespace, owner)
        if budget is None:
            budget = _Budget(tokens=BURST, at=now)
            self._budgets.put(namespace, owner, budget)
        budget.tokens = min(float(BURST), budget.tokens + (now - budget.at) / REFILL)
        budget.at = now
        return budget

    def _combined(self, budget: _Budget, kind: EventType, reason: str, message: str) -> str:
        """Return the message, marked as one of many if its reason comes with ever new words."""
        now = self._clock()
        since, messages = budget.messages.get((kind.value, reason), (now, set()))
        if now - since > COMBINE_WINDOW:
            messages = set()
        if len(messages) <= COMBINE_AFTER:
            messages.add(message)
        budget.messages[kind.value, reason] = (now, messages)
        if len(messages) > COMBINE_AFTER:
            return f"(combined from similar events): {message}"
        return message

    async def _write_due(self, most: int | None = None) -> None:
        now = self._clock()
        due: list[str] = []
        for turn in _turns(entry for entry in self._dirty.values() if entry.due <= now):
            due += turn
            if most is not None and len(due) >= most:
                break
        left = iter(due)

        async def write_on() -> None:
            for name in left:
                # Somebody else may be writing too: `run`, while the process is asked to end and flushes.
                entry = self._dirty.pop(name, None)
                if entry is not None:
                    await self._write(entry)

        async with asyncio.TaskGroup() as group:
            for _ in range(min(AT_ONCE, len(due))):
                _ = group.create_task(write_on())

    async def _write(self, entry: _Entry) -> None:
        """Write one Event; transient failures are retried, a refused Event is dropped."""
        entry.due = self._clock() + SAME_AGAIN_EVERY
        count = entry.count
        try:
            if entry.created:
                try:
                    patch = {"count": count, "lastTimestamp": _seconds(entry.last), "message": entry.message}
                    await self._client.merge_patch(EVENTS, entry.name, patch, entry.namespace)
                except errors.NotFound:
                    # API servers keep Events for an hour.
                    await self._create(entry, count)
            else:
                await self._create(entry, count)
        except (errors.Unavailable, errors.TooManyRequests, errors.Fenced) as error:
            entry.attempts += 1
            if entry.attempts >= ATTEMPTS:
                self._drop(entry, error)
            else:
                entry.due = self._clock() + max(2.0**entry.attempts, error.retry_after or 0.0)
                self._dirty[entry.name] = entry
        except errors.KubeError as error:
            self._drop(entry, error)
        except Exception:
            self.dropped += 1
            logger.exception("cannot write event %s about %s", entry.reason, entry.involved.get("name"))
        else:
            entry.created = True
            entry.attempts = 0

    async def _create(self, entry: _Entry, count: int) -> None:
        body: dict[str, Any] = {
            "apiVersion": EVENTS.api_version,
            "kind": EVENTS.kind,
            "metadata": {"name": entry.name, "namespace": entry.namespace},
            "involvedObject": entry.involved,
            "type": entry.type.value,
            "reason": entry.reason,
            "message": entry.message[:LONGEST_MESSAGE],
            "count": count,
            "firstTimestamp": _seconds(entry.first),
            "lastTimestamp": _seconds(entry.last),
            "source": {"component": self._component},
            "reportingComponent": self._component,
            "reportingInstance": self._instance,
        }
        try:
            await self._client.create(EVENTS, body)
        except errors.AlreadyExists:
            # An earlier attempt had arrived although its answer was lost.
            logger.debug("event %s exists already", entry.name)

    def _drop(self, entry: _Entry, error: errors.KubeError) -> None:
        self.dropped += 1
        entry.attempts = 0
        logger.warning("event %s about %s is lost: %s", entry.reason, entry.involved.get("name"), error)


def _turns(entries: Iterable[_Entry]) -> Iterator[list[str]]:
    """Names of Events, one of each namespace in each turn."""
    by_namespace: dict[str, list[str]] = {}
    for entry in entries:
        by_namespace.setdefault(entry.namespace, []).append(entry.name)
    for turn in zip_longest(*by_namespace.values()):
        yield [name for name in turn if name is not None]


def _reference(obj: Object) -> Object:
    metadata = obj["metadata"]
    pairs = {
        "apiVersion": obj.get("apiVersion"),
        "kind": obj.get("kind"),
        "namespace": metadata.get("namespace"),
        "name": metadata["name"],
        "uid": metadata.get("uid"),
        "resourceVersion": metadata.get("resourceVersion"),
    }
    return {key: value for key, value in pairs.items() if value}


def _seconds(when: datetime) -> str:
    return when.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
