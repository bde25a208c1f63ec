"""Secrets, read by name.

The operator has no right to list or watch Secrets: a cache of them would hold every password of every namespace. It
reads the few it needs, and reads them again when they are old or Slurm rejects a token.

What was read is forgotten when nobody has asked for it for some minutes: the object that named it is gone, or names
another. Users decide how many Secrets there are and how long they are, so all together, and those of one namespace,
have a bound: the ones used longest ago are forgotten first, and read again when they are needed.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from slinky_api import labels
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.common import GROUP
from slinky_operator.kube import errors
from slinky_operator.kube.client import KubeClient
from slinky_operator.kube.resources import SECRETS
from slinky_operator.reconcile.text import moment
from slinky_operator.slurm import naming
from slinky_operator.slurm.tokens import signing_keys
from slinky_operator.slurm.tokens.signing_keys import SigningKey

OLD: Final = 60.0
"""Seconds after which a Secret is read again."""

OLD_IN_TROUBLE: Final = 3.0
"""The same while it is missing, or Slurm rejects what was in it."""

UNUSED: Final = 600.0
"""Seconds without use after which a Secret is forgotten."""

ROOM: Final = 32 * 2**20
"""Bytes of all Secrets that are kept."""

ROOM_OF_NAMESPACE: Final = 4 * 2**20
"""Bytes of those of one namespace."""

BARE: Final = 1024
"""Bytes that one takes beside its data, also one that does not exist; an upper bound."""


@dataclass(frozen=True, slots=True)
class Source:
    """A Secret as it was last read."""

    name: str
    read_at: float
    """Monotonic seconds."""

    exists: bool
    cluster_uid: str = ""
    """Uid of the Cluster it belongs to, from its label; empty for a user's Secret."""

    cluster_name: str = ""
    """The same for the name."""

    object_uid: str = ""
    is_of_operator: bool = False
    """Whether it has an owner or a label of the operator's API group: a Token's, a Cluster's or a LoginSet's Secret."""

    version: str = ""
    """Uid and `resourceVersion`: another one may mean that it held something else in between."""

    written_at: datetime | None = None
    """When it was last written, by the API server's clock; `None` if nothing says so."""

    immutable: bool = False
    servers: str | None = None
    """URLs of external servers that it is meant for, from its annotation; None without one."""

    data: Mapping[str, bytes] = field(default_factory=dict, repr=False)

    def digest(self, key: str) -> str:
        """Distinguishes two values of a key without disclosing either."""
        return hashlib.sha256(self.data.get(key, b"")).hexdigest()

    @property
    def size(self) -> int:
        """Bytes that it takes, roughly."""
        servers = len(self.servers or "")
        return BARE + servers + sum(BARE // 4 + len(key) + len(value) for key, value in self.data.items())


@dataclass(slots=True)
class _Kept:
    source: Source
    used_at: float
    """Monotonic seconds."""


class SecretReader:
    """Secrets by namespace and name, as last read.

    Parameters
    ----------
    client
        Used for reading one Secret at a time.
    clock
        Monotonic seconds.
    room, room_of_namespace
        Bytes of all Secrets, and of those of one namespace, that are kept.
    """

    def __init__(
        self,
        client: KubeClient,
        *,
        clock: Callable[[], float] = time.monotonic,
        room: int = ROOM,
        room_of_namespace: int = ROOM_OF_NAMESPACE,
    ) -> None:
        self._client = client
        self._clock = clock
        self._room = room
        self._room_of_namespace = room_of_namespace
        self._known: OrderedDict[tuple[str, str], _Kept] = OrderedDict()
        """The one that was used last at the end."""
        self._sizes: Counter[str] = Counter()
        """Bytes by namespace."""
        self._timer: asyncio.TimerHandle | None = None

    async def read(self, namespace: str, names: Iterable[str], *, older_than: float) -> dict[str, Source]:
        """Return these Secrets; read those that are unknown or were read more than `older_than` seconds ago."""
        found = {}
        for name in dict.fromkeys(names):
            kept = self._known.get((namespace, name))
            known = None if kept is None else kept.source
            if known is None or self._clock() - known.read_at > older_than:
                known = await self._read(namespace, name)
            self._keep(namespace, name, known)
            found[name] = known
        return found

    def forget(self, namespace: str, name: str) -> None:
        """Read the Secret at the next request; call this after writing it."""
        kept = self._known.pop((namespace, name), None)
        if kept is not None:
            self._sizes[namespace] -= kept.source.size
            if not self._sizes[namespace]:
                del self._sizes[namespace]

    @property
    def size(self) -> int:
        """Bytes of all that are kept, roughly."""
        return self._sizes.total()

    def _keep(self, namespace: str, name: str, source: Source) -> None:
        """Keep a Secret that was just used, and make room for it."""
        self.forget(namespace, name)
        self._known[namespace, name] = _Kept(source, self._clock())
        self._sizes[namespace] += source.size
        while self._sizes[namespace] > self._room_of_namespace:
            self._forget_first_of(namespace)
        while self.size > self._room:
            # Who has most makes room: others would have to read theirs again in each pass.
            self._forget_first_of(max(self._sizes, key=self._sizes.__getitem__))
        self._forget_unused()

    def _forget_first_of(self, namespace: str) -> None:
        self.forget(*next(key for key in self._known if key[0] == namespace))

    def _forget_unused(self) -> None:
        """Forget what was not used for long; look again when the next one is due, also if nobody reads any more."""
        now = self._clock()
        while self._known:
            key, kept = next(iter(self._known.items()))
            if now - kept.used_at < UNUSED:
                if self._timer is None:
                    due = UNUSED - (now - kept.used_at)
                    self._timer = asyncio.get_running_loop().call_later(due, self._look_again)
                return
            self.forget(*key)

    def _look_again(self) -> None:
        self._timer = None
        self._forget_unused()

    async def _read(self, namespace: str, name: str) -> Source:
        try:
            secret = await self._client.get(SECRETS, name, namespace)
        except errors.NotFound:
            return Source(name, self._clock(), exists=False)
        metadata: Mapping[str, Any] = secret["metadata"]
        own = metadata.get("labels") or {}
        return Source(
            name,
            self._clock(),
            exists=True,
            cluster_uid=own.get(labels.LABEL_CLUSTER_UID, ""),
            cluster_name=own.get(labels.LABEL_CLUSTER_NAME, ""),
            object_uid=metadata["uid"],
            is_of_operator=_is_of_operator(metadata),
            version=f"{metadata['uid']} {metadata.get('resourceVersion', '')}",
            written_at=_written_at(metadata),
            immutable=bool(secret.get("immutable")),
            servers=(metadata.get("annotations") or {}).get(labels.ANNOTATION_SECRET_SERVER),
            data={key: _decoded(value) for key, value in (secret.get("data") or {}).items()},
        )


def _is_of_operator(metadata: Mapping[str, Any]) -> bool:
    """Whether an owner or a label of an object belongs to the operator's API group, or the operator manages it."""
    marks: Mapping[str, str] = metadata.get("labels") or {}
    owners = (str(reference.get("apiVersion")) for reference in metadata.get("ownerReferences") or ())
    domains = (text.partition("/")[0] for text in (*owners, *marks))
    return marks.get(labels.LABEL_APP_MANAGED_BY) == labels.MANAGED_BY or any(
        domain == GROUP or domain.endswith(f".{GROUP}") for domain in domains
    )


def _written_at(metadata: Mapping[str, Any]) -> datetime | None:
    """The latest of the times at which it was created and somebody has changed it."""
    fields = metadata.get("managedFields") or ()
    times = (moment(one) for one in (metadata.get("creationTimestamp"), *(one.get("time") for one in fields)))
    return max((one for one in times if one is not None), default=None)


def _decoded(value: str) -> bytes:
    try:
        return base64.b64decode(value)
    except binascii.Error:
        return b""


async def signing_key(secrets: SecretReader, cluster: Cluster, older_than: float) -> SigningKey | None:
    """Read the key, if the copy belongs to this very Cluster; None if it is not known.

    Parameters
    ----------
    secrets
        Reads the copy.
    cluster
        A Cluster; of one that runs elsewhere there is no key.
    older_than
        Seconds for which a copy that was read counts.

    Raises
    ------
    KubeError
        The Secret could not be read.
    """
    if cluster.spec.external:
        return None
    name = naming.key_copy(cluster.name)
    found = (await secrets.read(cluster.namespace, (name,), older_than=older_than))[name]
    if not found.exists or found.cluster_uid != cluster.uid:
        return None
    secret, pem = found.data.get(naming.JWT_KEY, b""), found.data.get(naming.SIGNING_KEY, b"")
    try:
        return signing_keys.private(pem) if pem else SigningKey(secret) if secret else None
    except signing_keys.UnusableKey:
        # Somebody has edited the copy: the Cluster controller writes it again.
        return None


async def job_logs_key(secrets: SecretReader, cluster: Cluster) -> bytes:
    """The key of a Cluster's job log servers; empty if it is not known. It is in no other namespace."""
    name = naming.job_logs_key(cluster.name)
    for age in (OLD, OLD_IN_TROUBLE):
        source = (await secrets.read(cluster.namespace, (name,), older_than=age))[name]
        if source.exists and source.cluster_uid == cluster.uid:
            return source.data.get(naming.JOB_LOGS_KEY, b"")
    return b""
