"""The public keys of tokens: those of other issuers, from the ConfigMap that the spec names, and the operator's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from slinky_api.errors import Problem
from slinky_api.v1alpha1.cluster.spec import ClusterSpec
from slinky_operator.slurm import naming
from slinky_operator.slurm.conf.sources.gather import TextSource
from slinky_operator.slurm.tokens import key_set
from slinky_operator.slurm.tokens.key_set import UnusableKeySet
from slinky_operator.slurm.tokens.signing_keys import PublicKey

FIELD: Final = "spec.auth.jwksRef"


@dataclass(frozen=True, slots=True)
class TokenKeys:
    """The key set for the daemons, and what is wrong with its sources."""

    text: str = ""
    """Content of the file; empty for none."""

    problems: tuple[Problem, ...] = ()
    missing: tuple[Problem, ...] = ()
    """Those about a ConfigMap that does not exist."""


def gather(spec: ClusterSpec, sources: Mapping[str, TextSource], own: Sequence[PublicKey] = ()) -> TokenKeys:
    """Put the key set together.

    Parameters
    ----------
    spec
        Of a managed Cluster.
    sources
        ConfigMaps by name, as last read.
    own
        The operator's keys; each is in the set, whatever the user gives.
    """
    ref = spec.auth.jwks_ref
    if ref is None:
        return TokenKeys(key_set.render(own))
    source, key = sources.get(ref.name), ref.key or naming.JWKS_OF_USERS
    if source is None or (not source.exists and not source.refused):
        return TokenKeys(missing=(Problem(FIELD, f"there is no ConfigMap {ref.name}"),))
    try:
        others = _read(source, key, own)
    except UnusableKeySet as error:
        return TokenKeys(problems=(Problem(FIELD, f"{key} of ConfigMap {ref.name}: {error}"),))
    return TokenKeys(key_set.render((*own, *others)))


def _read(source: TextSource, key: str, own: Sequence[PublicKey]) -> tuple[PublicKey, ...]:
    """The user's keys that are not the operator's too; raises `UnusableKeySet`."""
    if source.refused:
        raise UnusableKeySet(f"the ConfigMap {source.refused}")
    if key not in source.texts:
        has = ", ".join(sorted((*source.texts, *source.not_text))[:10]) or "none"
        raise UnusableKeySet(f"there is no such text (keys of the ConfigMap: {has})")
    ours = {one.kid: one for one in own}
    others = key_set.read(source.texts[key])
    clash = next((other.kid for other in others if other.kid in ours and other != ours[other.kid]), None)
    if clash is not None:
        raise UnusableKeySet(f"the id {clash} is that of a key that the operator signs with")
    return tuple(other for other in others if other.kid not in ours)
