"""What the cached objects take, and the namespaces that are over their budget, when somebody scrapes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from typing_extensions import override

from slinky_operator.kube.cache.budget import Budget
from slinky_operator.kube.cache.total import Total
from slinky_operator.metrics.names import MOST_OBJECTS, PREFIX


class Budgets(Collector):
    """Samples of budgets.

    Parameters
    ----------
    budgets
        By what they are for.
    total
        What all may take together; None for no limit.
    most
        Namespaces with samples.
    """

    def __init__(self, budgets: Mapping[str, Budget], total: Total | None = None, *, most: int = MOST_OBJECTS) -> None:
        self._budgets = budgets
        self._total = total
        self._most = most

    def describe(self) -> Iterable[Metric]:
        """Families without samples: the registry asks for their names."""
        return self._families({})

    @override
    def collect(self) -> Iterator[Metric]:
        return self._families(self._budgets)

    def _families(self, budgets: Mapping[str, Budget]) -> Iterator[Metric]:
        taken = GaugeMetricFamily(
            f"{PREFIX}_cache_bytes",
            "Memory that the cached objects take: those that users write, and those with the operator's labels.",
            labels=["objects"],
        )
        left_out = GaugeMetricFamily(
            f"{PREFIX}_namespace_objects_left_out",
            "Objects of a namespace that are not cached, since they are over its budget; no sample where all fit.",
            labels=["namespace", "objects"],
        )
        limit = GaugeMetricFamily(
            f"{PREFIX}_cache_limit_bytes",
            "Memory that the cached objects of all namespaces may take together; no sample without a limit.",
        )
        if self._total is not None and budgets:
            limit.add_metric([], self._total.limit)
        for name, budget in budgets.items():
            taken.add_metric([name], sum(one.taken for one in budget.accounts.values()))
            for namespace, account in islice(budget.over(), self._most):
                left_out.add_metric([namespace, name], account.objects)
        yield limit
        yield taken
        yield left_out
