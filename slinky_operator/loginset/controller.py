"""One pass over a LoginSet."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from typing_extensions import override

from slinky_api.conditions import LoginSetCondition, find
from slinky_api.errors import InvalidObjectError
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.loginset import LoginSet, LoginSetStatus
from slinky_operator.kube.objects import Object
from slinky_operator.kube.ports import Kube, Warner
from slinky_operator.kube.resources import LOGINSETS
from slinky_operator.loginset import report
from slinky_operator.loginset.execute import act
from slinky_operator.loginset.observe import Caches, Snapshot, observe, wanted_secrets
from slinky_operator.loginset.plan import Defaults, plan
from slinky_operator.reconcile.reconciler import ModelReconciler
from slinky_operator.reconcile.secrets import OLD, OLD_IN_TROUBLE, SecretReader
from slinky_operator.runtime.controller import Result

ROUNDS: Final = 3
"""Rounds within one pass, each after something was learned."""


class LoginSetReconciler(ModelReconciler[LoginSet]):
    """Reconciles LoginSets.

    Parameters
    ----------
    kube, recorder
        Write objects and Events.
    caches
        Read only.
    secrets
        Reads Secrets by name.
    defaults
        From the settings.
    """

    def __init__(
        self,
        kube: Kube,
        recorder: Warner,
        caches: Caches,
        secrets: SecretReader,
        defaults: Defaults,
        *,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        super().__init__(LoginSet, LOGINSETS, caches.loginsets, kube, recorder, clock=clock, now=now)
        self._kube = kube
        self._recorder = recorder
        self._caches = caches
        self._secrets = secrets
        self._defaults = defaults
        self._now = now

    @override
    def invalid(self, obj: Object, error: InvalidObjectError) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        words = "; ".join(map(str, error.problems))
        return obj.get("status") or {}, report.invalid(obj, words, self._now())

    @override
    async def run_pass(self, key: tuple[str, str], obj: Object) -> Result:
        loginset = await self.parse(obj)
        if loginset is None:
            return Result()
        for _ in range(ROUNDS):
            snapshot = await self._observe(loginset, obj)
            made = plan(snapshot, self._defaults, self._now())
            again = await act(made.actions, loginset, self._kube, self._secrets)
            if again:
                continue
            if made.status is not None:
                await self._write_status(obj, loginset, made.status)
            return Result(made.wake_up)
        return Result(0.0)

    async def _observe(self, loginset: LoginSet, raw: Object) -> Snapshot:
        cluster, why = await self._cluster(loginset)
        degraded = find(loginset.status.conditions, LoginSetCondition.READY)
        troubled = degraded is None or degraded.status != "True"
        names = wanted_secrets(loginset, cluster)
        secrets = await self._secrets.read(loginset.namespace, names, older_than=OLD_IN_TROUBLE if troubled else OLD)
        return observe(loginset, raw, cluster, why, self._caches, secrets)

    async def _cluster(self, loginset: LoginSet) -> tuple[Cluster | None, str]:
        """The Cluster that a LoginSet names, and why it cannot be read."""
        found = await self._caches.clusters.named((loginset.namespace, loginset.spec.cluster_name))
        if isinstance(found, InvalidObjectError):
            return None, "; ".join(map(str, found.problems))[:500]
        return found, ""

    async def _write_status(self, obj: Object, loginset: LoginSet, status: LoginSetStatus) -> None:
        before = find(loginset.status.conditions, LoginSetCondition.DEGRADED)
        after = find(status.conditions, LoginSetCondition.DEGRADED)
        written = await self.status.write(obj, obj.get("status") or {}, status.to_dict())
        told = before is not None and after is not None and before.message == after.message
        if written is not None and after is not None and after.status == "True" and not told:
            self._recorder.warning(obj, after.reason, after.message)
