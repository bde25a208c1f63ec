"""One pass over a Token: calls observe, plan, write and report in turn. It keeps nothing between passes."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

from typing_extensions import override

from slinky_api.conditions import Reason
from slinky_api.errors import InvalidObjectError
from slinky_api.v1alpha1.token import Token, TokenStatus
from slinky_operator.kube.cache.store import Key, Store
from slinky_operator.kube.objects import Object
from slinky_operator.kube.ports import Kube, Warner
from slinky_operator.kube.resources import TOKENS
from slinky_operator.reconcile.clusters import ClusterReader
from slinky_operator.reconcile.reconciler import ModelReconciler, Postponed
from slinky_operator.reconcile.secrets import SecretReader
from slinky_operator.reconcile.writes.parts import stored_status
from slinky_operator.runtime.controller import Result
from slinky_operator.slurm.tokens.signing_keys import UnusableKey
from slinky_operator.token import report, writes
from slinky_operator.token.observation import Observer
from slinky_operator.token.plan import CHECK_EACH_S, CHECK_S, Plan, Problem, plan
from slinky_operator.token.triggers import TokenTriggers

OVERTAKEN_S: Final = 0.5
"""Seconds until the pass after one that found the Secret changed while it planned."""


class TokenReconciler(ModelReconciler[Token]):
    """Reconciles Tokens.

    Parameters
    ----------
    kube
        The API server.
    secrets
        Reads the keys of Clusters.
    recorder
        Emits Events.
    tokens
        Their cache, with `observation.INDEXES_OF_TOKENS`.
    clusters
        Reads Clusters.
    clock, now
        Monotonic seconds, and the wall clock.
    """

    def __init__(
        self,
        kube: Kube,
        secrets: SecretReader,
        recorder: Warner,
        tokens: Store,
        clusters: ClusterReader,
        *,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        super().__init__(Token, TOKENS, tokens, kube, recorder, clock=clock, now=now)
        self._kube = kube
        self._recorder = recorder
        self._now = now
        self._observer = Observer(kube, secrets, tokens, clusters, now)
        self.triggers = TokenTriggers(tokens, self._observer.forget_key)
        """What triggers it: each handler returns the keys to reconcile."""

    @override
    def invalid(self, obj: Object, error: InvalidObjectError) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        stored = stored_status(TokenStatus, obj)
        return stored.to_dict(), report.invalid(stored, str(error), self._now()).to_dict()

    @override
    async def run_pass(self, key: Key, obj: Object) -> Result:
        token = await self.parse(obj)
        if token is None or token.deleting:
            return Result()
        snapshot = await self._observer.observe(obj, token)
        planned = plan(snapshot)
        try:
            done = await writes.carry_out(self._kube, snapshot, planned)
        except UnusableKey as error:
            done, planned = True, _unusable(token, error)
        if not done:
            return Postponed(OVERTAKEN_S)
        if planned.problem is None and planned.claims is None:
            # An immutable Secret was deleted: the next pass makes another, and has something to report.
            return Postponed(OVERTAKEN_S)
        news = report.news(token.status, planned.problem)
        if news is not None:
            self._recorder.warning(obj, str(news.reason), news.message)
        wanted = report.status(token, planned, snapshot.now)
        _ = await self.status.write(obj, obj.get("status") or {}, wanted.to_dict())
        if planned.wake_up < CHECK_S:
            return Result(planned.wake_up)
        return Result(max(CHECK_S, CHECK_EACH_S * len(self.objects)))


def _unusable(token: Token, error: UnusableKey) -> Plan:
    """The plan if the Cluster's key cannot sign."""
    told = f"the key of auth/jwt of Cluster {token.cluster_key[1]} cannot sign a token: {error}"
    return replace(Plan(keeps_token=True), problem=Problem(Reason.SECRET_INVALID, told))
