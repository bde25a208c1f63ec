"""The program that runs checks on a node: its names, and its lines in slurm.conf. Pure.

Slurm gives nodes no HealthCheckProgram, only prologs and epilogs. So the program is a prolog, which slurmds find beside
slurm.conf, and HealthCheckProgram is the path where they all have that. On a node without checks it ends at once.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Final

from slinky_operator.slurm.conf.syntax.directives import Directive

PROLOG: Final = "checks-prolog"
EPILOG: Final = "checks-epilog"
"""Names of its files beside slurm.conf; no script of a user's begins like these."""

LINES: Final = (Directive("Prolog", PROLOG), Directive("Epilog", EPILOG))
"""Its lines in slurm.conf among the scripts."""

HEALTH_CHECK: Final = f"/run/slurm/conf/{PROLOG}"
"""The path of the program in every container of slurmd, whether it gets its files from slurmctld or from a volume."""

KEYS: Final = {"HealthCheckProgram": HEALTH_CHECK, "HealthCheckInterval": "90"}
"""Keys of slurm.conf, unless `extraConf` says otherwise; seconds.

Daemons of 26.05 log an error if the interval is not longer than HealthCheckTimeout, which is 60.
"""

TWICE: Final = f"files {PROLOG} and {EPILOG} are given already: rename them, or remove health.checks from the NodeSets"

GIVEN_FOLDER: Final = "/etc/slurm-health-checks"
"""Where the ConfigMap with a NodeSet's checks is mounted."""

STATE_FOLDER: Final = "/run/slurm-health-checks"
"""Where the program remembers results; it is root's, in a volume of the pod."""

_GIVEN: Final = "FOLDER_OF_CHECKS"
_STATE: Final = "FOLDER_OF_RESULTS"


def program(given: str = GIVEN_FOLDER, state: str = STATE_FOLDER) -> str:
    """The program, for the folders with checks and with results."""
    return script("run-checks").replace(_GIVEN, given).replace(_STATE, state)


@cache
def script(name: str) -> str:
    """The text of one of the scripts here."""
    return resources.files("slinky_operator.slurm.health_checks").joinpath(f"{name}.sh").read_text(encoding="utf-8")
