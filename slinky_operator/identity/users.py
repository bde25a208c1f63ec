"""Where the users of a Cluster come from, and what is wrong with it. Pure.

Lines of passwd and group reach the daemons as a ConfigMap of the operator's, a checked copy of the user's. A text with
a fault changes nothing: the copy stays as it is, since a user who disappears takes running jobs' names with them. The
Secret with SSSD's configuration is mounted as it is; it is checked here because SSSD reports little where the user
looks. What would let somebody in the directory be SlurmUser is refused by the sidecar too.
"""

from __future__ import annotations

import configparser
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from slinky_api.conditions import Reason
from slinky_api.v1alpha1.cluster.kind import Cluster
from slinky_api.v1alpha1.cluster.parts import Identity, Sssd
from slinky_operator.identity import entries
from slinky_operator.reconcile.secrets import Source
from slinky_operator.slurm import naming
from slinky_operator.slurm.conf import TextSource

LARGEST: Final = 900_000
"""Bytes of both files together: a ConfigMap holds a mebibyte."""

LONGEST_CONF: Final = 262_144
"""Bytes of sssd.conf."""

SSSD_CONF: Final = "sssd.conf"
"""Key of the Secret that is used if none is named."""

_IDS_OF_DAEMONS: Final = (0, naming.SLURM_UID, naming.NOBODY, naming.NOBODY + 1)
"""Numbers that nobody in a directory may have: they would be root, SlurmUser or nobody."""

_NUMBER: Final = re.compile("[0-9]{1,10}", re.ASCII)

_MAPPED_FROM: Final = 200_000
"""Lowest number that SSSD makes of a SID unless told otherwise (`ldap_idmap_range_min`)."""

_CONFIG_MAP: Final = "spec.identity.passwd.configMapRef"
_SECRET: Final = "spec.identity.sssd.confRef"  # noqa: S105


@dataclass(frozen=True, slots=True)
class IdentityTrouble:
    """What is wrong with the source of users."""

    reason: Reason
    message: str
    """With the field."""


@dataclass(frozen=True, slots=True)
class Users:
    """The users from passwd and group."""

    texts: Mapping[str, str] | None = None
    """The checked files by name; `None` if the copy stays as it is."""

    trouble: IdentityTrouble | None = None


def config_maps(identity: Identity | None) -> tuple[str, ...]:
    """Names of the ConfigMaps that are read."""
    return () if identity is None or identity.passwd is None else (identity.passwd.config_map_ref.name,)


def secrets(identity: Identity | None) -> tuple[str, ...]:
    """Names of the Secrets that are read."""
    return () if identity is None or identity.sssd is None else (identity.sssd.conf_ref.name,)


def conf_key(sssd: Sssd) -> str:
    """Key of the Secret with the configuration of SSSD."""
    return sssd.conf_ref.key or SSSD_CONF


def users(cluster: Cluster, texts: Mapping[str, TextSource]) -> Users:
    """Read the users of a Cluster with passwd and group.

    Parameters
    ----------
    texts
        ConfigMaps by name; one that is not in here does not exist.
    """
    identity = cluster.spec.identity
    if identity is None or identity.passwd is None:
        return Users()
    name = identity.passwd.config_map_ref.name
    source = texts.get(name)
    if source is None or not source.exists:
        return _stays(Reason.CONFIG_SOURCE_NOT_FOUND, f"there is no ConfigMap {name}")
    fault = _fault_of_source(source)
    if fault:
        return _stays(Reason.IDENTITY_REFUSED, f"ConfigMap {name} {fault}")
    found = entries.read(source.texts[entries.PASSWD], source.texts.get(entries.GROUP, ""))
    if found.problems:
        return _stays(Reason.IDENTITY_REFUSED, f"ConfigMap {name}: {'; '.join(found.problems)}")
    return Users(found.texts)


def trouble_of_sssd(cluster: Cluster, sources: Mapping[str, Source]) -> IdentityTrouble | None:
    """Find what is wrong with the configuration of SSSD; `None` if it can be tried.

    Parameters
    ----------
    sources
        Secrets by name, as last read.
    """
    identity = cluster.spec.identity
    if identity is None or identity.sssd is None:
        return None
    name, key = identity.sssd.conf_ref.name, conf_key(identity.sssd)
    source = sources.get(name)
    if source is None:
        return None
    if not source.exists:
        return IdentityTrouble(Reason.SECRET_NOT_FOUND, f"{_SECRET}: there is no Secret {name}; SSSD waits for it")
    if not source.data.get(key):
        return IdentityTrouble(
            Reason.SECRET_KEY_NOT_FOUND, f"{_SECRET}: Secret {name} has no key {key}; SSSD waits for it"
        )
    fault = _fault_of_conf(source.data[key])
    return IdentityTrouble(Reason.SECRET_INVALID, f"{_SECRET}: Secret {name}, key {key}: {fault}") if fault else None


def _stays(reason: Reason, words: str) -> Users:
    return Users(trouble=IdentityTrouble(reason, f"{_CONFIG_MAP}: {words}. The daemons keep the users they have"))


def _fault_of_source(source: TextSource) -> str:
    """Why nothing in a ConfigMap can be read as users; empty if it can."""
    if source.refused:
        return source.refused
    for key in (entries.PASSWD, entries.GROUP):
        if key in source.not_text:
            return f"has a key {key} that is not text in UTF-8"
    if entries.PASSWD not in source.texts:
        return f"has no key {entries.PASSWD}"
    size = sum(len(source.texts.get(key, "").encode()) for key in (entries.PASSWD, entries.GROUP))
    return f"has {size} bytes of passwd and group, and may have {LARGEST}" if size > LARGEST else ""


def _fault_of_conf(data: bytes) -> str:
    """Why SSSD would not answer with this configuration; without a word of it, since it holds a password."""
    if len(data) > LONGEST_CONF:
        return f"has {len(data)} bytes, and may have {LONGEST_CONF}"
    parser = configparser.ConfigParser(interpolation=None, strict=False, allow_no_value=True)
    try:
        parser.read_string(data.decode())
    except (UnicodeDecodeError, configparser.Error):
        return "is not a configuration of SSSD: sections in brackets, and lines with name = value"
    if not parser.has_section("sssd"):
        return "has no section [sssd]"
    services = {one.strip() for one in (parser.get("sssd", "services", fallback="") or "").split(",")}
    if "nss" not in services:
        return "does not name nss in [sssd] services: no daemon could ask for users"
    domains = [one for one in parser.sections() if one.startswith("domain/")]
    return _fault_of_domains([parser[domain] for domain in domains if domain.count("/") == 1])


def _fault_of_domains(domains: Sequence[configparser.SectionProxy]) -> str:
    """Why SSSD would not start with these; trusted domains, with a second slash, are left out: SSSD makes their ids."""
    if not domains:
        return "has no section [domain/...]"
    left = next((id_ for domain in domains for id_ in _ids_left(domain)), None)
    if left is None:
        return ""
    return (
        f"a section [domain/...] lets somebody in the directory have the number {left}, which belongs to a daemon, so "
        "SSSD does not start with it: write max_id = 64029 into the section, or min_id = 65536, or name each of 0, "
        "64030, 65534 and 65535 as (!(uidNumber=64030)) in its ldap_user_search_base"
    )


def _ids_left(domain: configparser.SectionProxy) -> Iterator[int]:
    """Ids of daemons that a domain may give to a person; `containers/sssd/ids.pl` has the same rule."""

    def number(key: str, default: int) -> int:
        text = (domain.get(key) or "").strip()
        return int(text) if _NUMBER.fullmatch(text) else default

    by_provider = "true" if (domain.get("id_provider") or "").strip().lower() == "ad" else "false"
    mapped = (domain.get("ldap_id_mapping") or by_provider).strip().lower() == "true"
    lowest = number("ldap_idmap_range_min", _MAPPED_FROM) if mapped else number("min_id", 1)
    highest = number("max_id", 0) or 2**32 - 1
    base = domain.get("ldap_user_search_base") or ""
    for one in _IDS_OF_DAEMONS:
        if lowest <= one <= highest and f"(!(uidNumber={one}))" not in base:
            yield one
