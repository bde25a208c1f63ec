"""From caches, and from the API server for two Secrets, to the snapshot of one Token."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from itertools import islice
from typing import Any, Final

from slinky_api.v1alpha1.token import TOKEN, Token
from slinky_operator.kube import errors
from slinky_operator.kube.cache.store import Indexer, Store
from slinky_operator.kube.objects import Object
from slinky_operator.kube.ports import Getter
from slinky_operator.kube.resources import SECRETS
from slinky_operator.reconcile.clusters import ClusterReader
from slinky_operator.reconcile.secrets import SecretReader, signing_key
from slinky_operator.reconcile.writes.parts import controller_of
from slinky_operator.slurm import naming
from slinky_operator.slurm.tokens.signing_keys import SigningKey
from slinky_operator.token import jwts, plan
from slinky_operator.token.snapshot import Snapshot, StoredToken

CLUSTER_OF_TOKEN: Final = "cluster of token"  # noqa: S105
"""Index of the Token cache over `<namespace>/<cluster>`."""

NEIGHBOURS: Final = "namespace and cluster of token"
"""Index of the Token cache over `<namespace of the Token>/<namespace>/<cluster>`."""

KEY_VALID_S: Final = 10.0
"""Seconds for which a key that was read counts: many Tokens share it."""


def cluster_of(obj: Object) -> str:
    """Index value of the Cluster that a Token names."""
    ref = _ref(obj)
    return f"{ref.get('namespace') or obj['metadata'].get('namespace')}/{ref.get('name')}"


def _ref(obj: Object) -> Mapping[str, Any]:
    ref = (obj.get("spec") or {}).get("clusterRef")
    return ref if isinstance(ref, dict) else {}


def _by_cluster(obj: Object) -> list[str]:
    return [cluster_of(obj)]


def _by_neighbours(obj: Object) -> list[str]:
    return [f"{obj['metadata'].get('namespace')}/{cluster_of(obj)}"]


INDEXES_OF_TOKENS: Final[Mapping[str, Indexer]] = {CLUSTER_OF_TOKEN: _by_cluster, NEIGHBOURS: _by_neighbours}
"""Indexes the Token cache must have."""


class Observer:
    """Builds snapshots.

    Parameters
    ----------
    kube
        Reads the Secret of the Token.
    secrets
        Reads the copies of the keys of Clusters.
    tokens
        Their cache, with `INDEXES_OF_TOKENS`.
    clusters
        Reads Clusters.
    now
        The wall clock.
    """

    def __init__(
        self, kube: Getter, secrets: SecretReader, tokens: Store, clusters: ClusterReader, now: Callable[[], datetime]
    ) -> None:
        self._kube = kube
        self._secrets = secrets
        self._tokens = tokens
        self._clusters = clusters
        self._now = now

    async def observe(self, obj: Object, token: Token) -> Snapshot:
        """Read everything that a pass needs.

        Raises
        ------
        KubeError
            A Secret could not be read.
        """
        cluster = await self._clusters.find(token.cluster_key)
        key = await signing_key(self._secrets, cluster, KEY_VALID_S) if cluster is not None else None
        secret = await self._secret(token, key)
        return Snapshot(token, self._now(), cluster, key, secret, is_surplus=self._is_surplus(obj))

    def forget_key(self, namespace: str, cluster: str) -> None:
        """Read the key of a Cluster at the next pass."""
        self._secrets.forget(namespace, naming.key_copy(cluster))

    async def _secret(self, token: Token, key: SigningKey | None) -> StoredToken | None:
        try:
            found = await self._kube.get(SECRETS, token.secret_name, token.namespace)
        except errors.NotFound:
            return None
        metadata = found["metadata"]
        owner = controller_of(found)
        is_token = owner.get("kind") == TOKEN.kind and str(owner.get("apiVersion", "")).startswith(f"{TOKEN.group}/")
        is_ours = is_token and owner.get("uid") == token.uid
        value = (found.get("data") or {}).get(token.secret_key) or ""
        return StoredToken(
            uid=metadata["uid"],
            resource_version=metadata["resourceVersion"],
            is_ours=is_ours,
            owner=f"{owner.get('kind')} {owner.get('name')}" if owner else "",
            of_namesake=is_token and not is_ours and owner.get("name") == token.name,
            immutable=bool(found.get("immutable")),
            has_value=bool(value),
            claims=jwts.read(jwts.decoded(value), key) if is_ours and key is not None and value else None,
        )

    def _is_surplus(self, obj: Object) -> bool:
        """Whether too many Tokens of the namespace and Cluster are older; it stops at the last one that matters."""
        mine = _age(obj)
        found: Iterable[Object] = self._tokens.find(NEIGHBOURS, f"{obj['metadata']['namespace']}/{cluster_of(obj)}")
        older = (one for one in found if _age(one) < mine)
        return next(islice(older, plan.MOST - 1, None), None) is not None


def _age(obj: Object) -> tuple[str, str]:
    metadata = obj["metadata"]
    return str(metadata.get("creationTimestamp") or ""), str(metadata["name"])
