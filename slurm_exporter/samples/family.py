"""A family of samples: its name, type, unit, labels and source, declared once beside the code that fills it.

The table in the documentation is written from the declarations. How samples become text is left to `page`.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

PREFIX = "slurm_cluster_"
"""Of every family about Slurm; neither slurm-exporter nor slurmctld's own endpoint has a name that begins so."""

OWN_PREFIX = "slurm_exporter_"
"""Of families about the exporter."""

Labels = tuple[str, ...]
"""Values of the labels, in the order of `Family.labels`."""


class Kind(enum.Enum):
    """Types of the text format that are used here."""

    GAUGE = "gauge"
    COUNTER = "counter"


@dataclass(frozen=True, slots=True)
class Family:
    """Declaration of a family.

    Parameters
    ----------
    name
        Whole name, with the unit, and with `_total` for a counter.
    kind
        Gauge or counter.
    text
        What it counts, for the HELP line and the table.
    source
        Operation and field of slurmrestd that the values come from.
    labels
        Names of the labels.
    unit
        Base unit in words, such as `bytes`; `1` for a number of things.
    """

    name: str
    kind: Kind
    text: str
    source: str
    labels: tuple[str, ...] = ()
    unit: str = "1"


@dataclass(frozen=True, slots=True)
class Samples:
    """A family with its values.

    Parameters
    ----------
    family
        The declaration.
    values
        Value by labels.
    """

    family: Family
    values: Mapping[Labels, float] = field(default_factory=dict)


def gauge(name: str, text: str, source: str, labels: Iterable[str] = (), unit: str = "1") -> Family:
    """Declare a gauge about Slurm."""
    return Family(PREFIX + name, Kind.GAUGE, text, source, tuple(labels), unit)


def counter(name: str, text: str, source: str, labels: Iterable[str] = (), unit: str = "1") -> Family:
    """Declare a counter about Slurm; `name` is without `_total`."""
    return Family(f"{PREFIX}{name}_total", Kind.COUNTER, text, source, tuple(labels), unit)


def own(name: str, text: str, labels: Iterable[str] = (), unit: str = "1", kind: Kind = Kind.GAUGE) -> Family:
    """Declare a family about the exporter; `name` of a counter is with `_total`."""
    return Family(OWN_PREFIX + name, kind, text, "the exporter", tuple(labels), unit)


def single(family: Family, value: float | None) -> Samples:
    """A family without labels; no sample where there is no value: an unknown number is not zero."""
    return Samples(family, {} if value is None else {(): value})
