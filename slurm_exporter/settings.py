"""Settings of the exporter: flags, of which most may come from the environment."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from slurm_client.tokens import FileToken, MintedToken, NoToken, StaticToken, TokenProvider
from slurm_exporter.counting import Budgets
from slurm_exporter.families.catalogue import GROUPS
from slurm_exporter.other_names.catalogue import SETS, incompatible
from slurm_exporter.sources.collector import Cadence

_LABEL: Final = re.compile(r"([a-zA-Z_][a-zA-Z0-9_]{0,62})=(.{0,256})")
_RESERVED: Final = frozenset(
    label
    for families in (*GROUPS.values(), *(names.families() for names in SETS.values()))
    for family in families
    for label in family.labels
)
"""Labels that a family has: the same one for every sample would be there twice."""


class SettingsError(Exception):
    """A flag or variable that cannot be used."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What the exporter does; see `--help`."""

    server: str
    token: TokenProvider
    cadence: Cadence
    budgets: Budgets
    labels: Mapping[str, str]
    accounting: bool
    host: str | None
    port: int
    ca_bundle: str | None
    log_level: str


def _at_least(least: float) -> type[float]:
    def read(text: str) -> float:
        value = float(text)
        if not least <= value <= 86_400:  # noqa: PLR2004 - a day
            raise argparse.ArgumentTypeError(f"must be between {least:g} and 86400 seconds")
        return value

    return read  # type: ignore[return-value] # argparse takes any callable


def _number(text: str) -> int:
    value = int(text)
    if not 0 <= value <= 1_000_000:  # noqa: PLR2004 - more series than a Prometheus takes
        raise argparse.ArgumentTypeError("must be between 0 and 1000000")
    return value


def parser(environment: Mapping[str, str]) -> argparse.ArgumentParser:
    """Flags, with defaults from the environment."""
    result = argparse.ArgumentParser(
        prog="slurm-exporter",
        description="Serves what Slurm knows as metrics for Prometheus. Slurm is asked at a pace of its own, whatever "
        "the number of scrapers.",
    )
    add = result.add_argument
    add("--server", default=environment.get("SLURMRESTD_URL"), help="URL of slurmrestd; default: $SLURMRESTD_URL")
    add("--token-file", type=Path, help="file with the token, read again when it changes; default: $SLURM_JWT")
    add("--key-file", type=Path, help="file with slurmctld's JWT key (HS256), to sign tokens with")
    add("--user", default="nobody", help="user of the tokens that are signed with --key-file")
    add("--ca-bundle", help="certificates that verify slurmrestd's")
    add("--listen-address", help="address to listen on; default: all")
    add("--port", type=int, default=8080)
    add("--interval", type=_at_least(1), default=10.0, metavar="SECONDS", help="between polls of lists and counters")
    add("--slow-interval", type=_at_least(1), default=60.0, metavar="SECONDS", help="between polls of fair share")
    add(
        "--stale-after",
        type=_at_least(1),
        default=120.0,
        metavar="SECONDS",
        help="data that Slurm has not confirmed for so long is left out",
    )
    add("--no-accounting", action="store_true", help="do not ask for fair share and slurmdbd")
    add("--nodes", type=_number, default=10_000, metavar="N", help="nodes with samples of their own; 0 for sums only")
    add("--users", type=_number, default=0, metavar="N", help="users with samples of their own: those with most CPUs")
    add("--accounts", type=_number, default=0, metavar="N", help="accounts with samples of their own")
    add("--call-users", type=_number, default=0, metavar="N", help="users with counters of their calls")
    add(
        "--names",
        action="append",
        default=[],
        choices=sorted(SETS),
        help="serve the names of another exporter too; may be repeated",
    )
    add("--label", action="append", default=[], metavar="NAME=VALUE", help="label for every sample; may be repeated")
    add("--log-level", default="info", choices=["debug", "info", "warning", "error"])
    return result


def load(arguments: Sequence[str] | None, environment: Mapping[str, str]) -> Settings:
    """Read flags and environment.

    Raises
    ------
    SettingsError
        With the flag and what is wrong with it.
    """
    flags = parser(environment).parse_args(arguments)
    if not flags.server:
        raise SettingsError("--server or $SLURMRESTD_URL must name slurmrestd, for example http://slurm-restapi:6820")
    interval = flags.interval
    if flags.stale_after < 2 * interval:
        raise SettingsError(f"--stale-after must be at least twice --interval, which is {interval:g} seconds")
    pair = incompatible(flags.names)
    if pair is not None:
        raise SettingsError(f"--names cannot be {' and '.join(sorted(pair))} at once: they give one name other labels")
    labels: dict[str, str] = {}
    for text in flags.label:
        match = _LABEL.fullmatch(text)
        if match is None or match[1] in _RESERVED or match[1].startswith("__"):
            raise SettingsError(f"--label {text[:80]!r} must be NAME=VALUE with a name that no family uses")
        labels[match[1]] = match[2]
    return Settings(
        server=flags.server,
        token=_token(flags, environment),
        cadence=Cadence(interval, max(interval, flags.slow_interval), flags.stale_after),
        budgets=Budgets(flags.nodes, flags.users, flags.accounts, flags.call_users, frozenset(flags.names)),
        labels=labels,
        accounting=not flags.no_accounting,
        host=flags.listen_address,
        port=flags.port,
        ca_bundle=flags.ca_bundle,
        log_level=flags.log_level,
    )


def _token(flags: argparse.Namespace, environment: Mapping[str, str]) -> TokenProvider:
    if flags.token_file and flags.key_file:
        raise SettingsError("only one of --token-file and --key-file can be given")
    if flags.key_file:
        try:
            return MintedToken(flags.key_file.read_bytes(), user=flags.user)
        except (OSError, ValueError) as error:
            raise SettingsError(f"--key-file {flags.key_file}: {error}") from error
    if flags.token_file:
        return FileToken(flags.token_file)
    token = environment.get("SLURM_JWT", "")
    return StaticToken(token) if token else NoToken()
