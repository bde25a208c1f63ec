"""Quantities of Kubernetes as the whole numbers that Slurm counts in. Pure."""

from __future__ import annotations

from decimal import ROUND_CEILING, Decimal
from typing import Final

from slinky_operator.jobs.refusal import InvalidJob
from slinky_operator.reconcile.writes.children import quantity

MIB: Final = Decimal(2**20)
_LARGEST: Final = Decimal(2**31 - 2)


def number_of(text: object, path: str) -> Decimal:
    """Read a quantity.

    Raises
    ------
    InvalidJob
        With the path, for what is none, or negative.
    """
    number = quantity(text)
    if number is None or not number.is_finite() or number < 0:
        raise InvalidJob(path, f"{str(text)[:60]!r} is no quantity")
    return number


def whole(number: Decimal, path: str) -> int:
    """Round up to a whole number.

    Raises
    ------
    InvalidJob
        With the path, for more than Slurm can count.
    """
    if number > _LARGEST:
        raise InvalidJob(path, "is more than Slurm can count")
    return int(number.to_integral_value(ROUND_CEILING))
