"""What triggers the Token controller: its Tokens, and changes of Clusters that their tokens depend on."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from slinky_api.conditions import Reason
from slinky_operator.kube.cache.store import Key, Store, key_of
from slinky_operator.kube.objects import Object
from slinky_operator.kube.resources import CLUSTERS, TOKENS
from slinky_operator.reconcile.triggers import Triggers, is_same, own_key, written_by_users
from slinky_operator.token.observation import CLUSTER_OF_TOKEN

_KEY_REASONS: Final = frozenset({Reason.KEY_PENDING, Reason.KEY_LOST, Reason.SECRET_NOT_FOUND, Reason.DAEMONS_STARTING})


class TokenTriggers:
    """Handlers of caches: each returns the keys of the Tokens to reconcile.

    Parameters
    ----------
    tokens
        The cache of Tokens.
    forget_key
        Called with namespace and name of a Cluster whose key may have changed.
    """

    def __init__(self, tokens: Store, forget_key: Callable[[str, str], None]) -> None:
        self._tokens = tokens
        self._forget_key = forget_key

    def table(self) -> Triggers:
        """All handlers, by their source."""
        return Triggers(
            objects={TOKENS: self.token, CLUSTERS: self.cluster},
        )

    def token(self, old: Object | None, new: Object | None) -> Iterable[Key]:
        """Handler of Tokens: their own key, unless only the status has changed."""
        return () if is_same(old, new, _of_token) else own_key(old, new)

    def cluster(self, old: Object | None, new: Object | None) -> Iterable[Key]:
        """Handler of Clusters: all Tokens of one whose grants or key may have changed."""
        if is_same(old, new, _of_interest):
            return
        obj = new or old
        if obj is None:
            return
        namespace, name = key_of(obj)
        self._forget_key(namespace, name)
        for token in self._tokens.find(CLUSTER_OF_TOKEN, f"{namespace}/{name}"):
            yield key_of(token)


def _of_token(obj: Object) -> tuple[Any, ...]:
    return written_by_users(obj, "annotations", "labels")


def _of_interest(obj: Object) -> tuple[Any, ...]:
    """Spec, and what the status says of keys: other parts of it change all the time."""
    metadata, status = obj["metadata"], obj.get("status") or {}
    reasons = {condition.get("reason") for condition in status.get("conditions") or () if isinstance(condition, dict)}
    return (
        metadata.get("uid"),
        metadata.get("generation"),
        bool(status.get("isReady")),
        status.get("signingKeyId"),
        frozenset(reasons & _KEY_REASONS),
    )
