"""A scrape shows what the caches take, and the first namespaces that are over their budget."""

from __future__ import annotations

from prometheus_client import CollectorRegistry

from slinky_operator.kube.cache.budget import Budget
from slinky_operator.metrics.budgets import Budgets


def test_what_is_taken_and_who_is_over() -> None:
    users, own = Budget(100), Budget(100)
    users.take("a", 40)
    users.take("b", 20)
    for number in range(5):
        own.leave_out(f"ns-{number}", 3, 1000)
    registry = CollectorRegistry()
    registry.register(Budgets({"users": users, "operator": own}, most=2))

    def sample(name: str, **labels: str) -> float | None:
        return registry.get_sample_value(f"slurm_operator_{name}", labels)

    assert sample("cache_bytes", objects="users") == 60
    assert sample("cache_bytes", objects="operator") == 0
    assert sample("namespace_objects_left_out", namespace="ns-0", objects="operator") == 3
    assert sample("namespace_objects_left_out", namespace="ns-2", objects="operator") is None
    assert sample("namespace_objects_left_out", namespace="a", objects="users") is None
