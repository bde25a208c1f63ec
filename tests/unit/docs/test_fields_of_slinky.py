"""The page about Slinky says what becomes of each field of the kinds of its 0.4 to 1.3."""

from __future__ import annotations

import re
from typing import Final

import pytest

from hack.localkube.paths import PROJECT

FIELDS: Final = {
    "Controller": (
        "accountingRef clusterName configFileRefs epilogScriptRefs epilogSlurmctldScriptRefs external externalConfig"
        " extraConf ha inplaceReconfigure jwksKeyRef jwtHs256KeyRef jwtKeyRef logfile metrics persistence"
        " prologScriptRefs prologSlurmctldScriptRefs reconfigure service slurmKeyRef slurmctld template"
    ),
    "RestApi": "replicas service slurmrestd template",
    "Accounting": (
        "external externalConfig extraConf initconf jwksKeyRef jwtHs256KeyRef jwtKeyRef service slurmKeyRef slurmdbd"
        " storageConfig template"
    ),
    "NodeSet": (
        "controllerRef extraConf logfile minReadySeconds ordinalPadding oversubscribeNode partition"
        " persistentVolumeClaimRetentionPolicy pinToNode pruneSlurmNodeRecords replicas revisionHistoryLimit"
        " scalingMode slurmd ssh taintKubeNodes template updateStrategy volumeClaimTemplates"
        " workloadDisruptionProtection"
    ),
    "LoginSet": (
        "controllerRef extraSshdConfig initconf login replicas rootSshAuthorizedKeys service sssdConfRef strategy"
        " template"
    ),
    "Token": "jwtHs256KeyRef jwtKeyRef lifetime refresh secretRef username",
}
"""Fields of the spec of each kind, in any of these releases."""


def told(kind: str) -> set[str]:
    """The first words of all fields that tables with the kind in their head name on their left."""
    page = (PROJECT / "docs" / "from-slinky.md").read_text(encoding="utf-8")
    found: set[str] = set()
    for table in re.findall(r"(?m)^\| [^\n]*\n\|[-|]+\|\n(?:\|.*\n)+", page):
        head, _, *rows = table.splitlines()
        if kind not in head.split("|")[1]:
            continue
        for row in rows:
            left = row.split("|")[1]
            if "RestApi, " in head and kind not in left:
                continue
            found |= {field.split(".")[0] for field in re.findall(r"`([A-Za-z0-9.]+)[^`]*`", left)}
    return found


@pytest.mark.parametrize("kind", FIELDS)
def test_each_field_is_told_of(kind: str) -> None:
    assert set(FIELDS[kind].split()) - told(kind) - ({"controllerRef"} if kind == "RestApi" else set()) == set()
