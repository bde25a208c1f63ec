"""Fair share by account, and by user where users are wanted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Final

from slurm_client.models.resources import Share
from slurm_exporter.samples.budget import cut, largest
from slurm_exporter.samples.family import Family, Labels, Samples, gauge

ACCOUNTS: Final = 512
"""Most accounts with samples of their own: those with most usage."""

_LABELS: Final = ["account", "user"]
NORMALIZED = gauge("share_normalized", "Share given, between 0 and 1.", "shares/: shares_normalized", _LABELS)
USAGE = gauge(
    "share_usage_effective",
    "Usage that counts against the share, between 0 and 1.",
    "shares/: effective_usage",
    _LABELS,
)
RAW_USAGE = gauge(
    "share_usage_seconds", "Decayed usage in weighted TRES seconds.", "shares/: usage", _LABELS, "seconds"
)
FACTOR = gauge("share_factor", "Fair-share factor of a user, between 0 and 1.", "shares/: fairshare.factor", _LABELS)
ALL: Final = (NORMALIZED, USAGE, RAW_USAGE, FACTOR)


def samples(shares: Iterable[Share], users: int) -> Iterator[Samples]:
    """Fill all families.

    Parameters
    ----------
    users
        How many users have samples, those with most usage; accounts have `user=""`.
    """
    found: list[tuple[Labels, Share]] = []
    usage: dict[bool, dict[str, float]] = {True: defaultdict(float), False: defaultdict(float)}
    for share in shares:
        is_user = "USER" in share.kind
        found.append(((cut(share.parent), cut(share.name)) if is_user else (cut(share.name), ""), share))
        usage[is_user][share.name] += share.usage
    kept = {True: largest(usage[True], users), False: largest(usage[False], ACCOUNTS)}
    chosen = [(labels, share) for labels, share in found if share.name in kept["USER" in share.kind]]
    values: dict[Family, dict[Labels, float]] = {family: {} for family in ALL}
    for labels, share in chosen:
        values[RAW_USAGE][labels] = share.usage
        for family, value in (
            (NORMALIZED, share.shares_normalized),
            (USAGE, share.effective_usage),
            (FACTOR, share.fairshare_factor if "USER" in share.kind else None),
        ):
            if value is not None:
                values[family][labels] = value
    for family, filled in values.items():
        yield Samples(family, filled)
