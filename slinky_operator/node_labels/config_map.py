"""The ConfigMap that the administrator writes: watched by its name alone, and read once for all Nodes.

One that is invalid says nothing: the Event on it has field and reason. One that does not exist wants nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

from slinky_api.events import EventReason
from slinky_operator.kube.cache.informer import Informer
from slinky_operator.kube.cache.store import Key
from slinky_operator.kube.cache.weight import run_in_thread
from slinky_operator.kube.client import KubeClient
from slinky_operator.kube.objects import Object
from slinky_operator.kube.ports import Recorder
from slinky_operator.kube.resources import CONFIGMAPS
from slinky_operator.node_labels.config_format import LONGEST_TEXT, ConfigError, parse
from slinky_operator.node_labels.model import WantedLabels

CONFIG: Final = "config"
"""Key of the ConfigMap; others are not read."""


class LabelConfig:
    """What the ConfigMap wants.

    Parameters
    ----------
    client
        Reads only.
    recorder
        Emits Events on the ConfigMap.
    key
        Its namespace and name.
    """

    def __init__(self, client: KubeClient, recorder: Recorder, key: Key) -> None:
        self._key = key
        self._recorder = recorder
        self._informer = Informer(
            client, CONFIGMAPS, namespaces=[key[0]], field_selector=f"metadata.name={key[1]}", prune=prune
        )
        self._informer.add_handler(lambda _old, _new: self._tell())
        self._listeners: list[Callable[[], None]] = []
        self._reading = asyncio.Lock()
        self._read: tuple[Object, Mapping[str, WantedLabels] | None] | None = None

    async def run(self) -> None:
        """Watch it until cancelled."""
        async with asyncio.TaskGroup() as group:
            _ = group.create_task(self._informer.run())
            _ = await self._informer.synced.wait()
            # A missing ConfigMap is reported too.
            self._tell()

    def subscribe(self, listener: Callable[[], None]) -> None:
        """Call `listener` after each change from now on. It must not block."""
        self._listeners.append(listener)

    async def read(self) -> Mapping[str, WantedLabels] | None:
        """What is wanted, by the name of the Node; None if the ConfigMap is invalid, or has not been seen yet."""
        if not self._informer.synced.is_set():
            return None
        async with self._reading:
            obj = self._informer.store.get(*self._key)
            if obj is None:
                return {}
            if self._read is None or self._read[0] is not obj:
                self._read = obj, await self._parse(obj)
            return self._read[1]

    def warn(self, reason: str, message: str) -> None:
        """Emit a Warning Event on the ConfigMap, whether it exists or not."""
        self._recorder.warning(self._about(), reason, message)

    def mention(self, reason: str, message: str) -> None:
        """Emit a Normal Event on it, in the same way."""
        self._recorder.normal(self._about(), reason, message)

    def _about(self) -> Object:
        namespace, name = self._key
        return self._informer.store.get(*self._key) or {
            "apiVersion": CONFIGMAPS.api_version,
            "kind": CONFIGMAPS.kind,
            "metadata": {"namespace": namespace, "name": name},
        }

    async def _parse(self, obj: Object) -> Mapping[str, WantedLabels] | None:
        text = obj["data"].get(CONFIG)
        try:
            if text is not None:
                return await run_in_thread(("", "node labels"), parse, text)
            why = "is missing"
        except ConfigError as error:
            why = str(error)
        told = f"data.{CONFIG}: {why}. Labels and resources that Nodes have stay as they are"
        self._recorder.warning(obj, EventReason.NODE_LABELS_INVALID, told)
        return None

    def _tell(self) -> None:
        for listener in self._listeners:
            listener()


def prune(obj: Object) -> None:
    """Keep what is read; of a text that is too long, enough to see that."""
    metadata, text = obj["metadata"], (obj.get("data") or {}).get(CONFIG)
    obj["metadata"] = {key: metadata[key] for key in ("namespace", "name", "uid", "resourceVersion") if key in metadata}
    obj["data"] = {} if text is None else {CONFIG: text[: LONGEST_TEXT + 1]}
    obj.pop("binaryData", None)
