"""Samples as text, in Prometheus's text format 0.0.4.

The format is prometheus-client's business: here are only a registry of one family, so that a long page can be written
piece by piece, and the labels that all samples get.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from prometheus_client import Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest

from slurm_exporter.samples.family import Samples

CONTENT_TYPE: Final = CONTENT_TYPE_PLAIN_0_0_4


class _One:
    """A registry of one family."""

    def __init__(self, metric: Metric) -> None:
        self._metric = metric

    def collect(self) -> Iterator[Metric]:
        """Give the family."""
        yield self._metric


def written(samples: Samples, labels: Mapping[str, str]) -> bytes:
    """Write a family; nothing if it has no samples.

    Parameters
    ----------
    samples
        The family and its values.
    labels
        Labels that each sample gets besides its own.
    """
    if not samples.values:
        return b""
    family = samples.family
    name = family.name.removesuffix("_total") if family.kind.value == "counter" else family.name
    metric = Metric(name, family.text, family.kind.value)
    for values, value in samples.values.items():
        metric.add_sample(family.name, {**labels, **dict(zip(family.labels, values, strict=True))}, float(value))
    return generate_latest(_One(metric))


def series(samples: Iterable[Samples]) -> int:
    """How many samples there are."""
    return sum(len(each.values) for each in samples)
