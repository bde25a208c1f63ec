"""Health checks that run on the nodes of a NodeSet: the part of its spec, and the checks that come with the operator.

What they do is in `slinky_operator.slurm.health_checks`, in a shell script for each.
"""

import re
from enum import StrEnum
from typing import Annotated, Final, Self

from pydantic import ConfigDict, Field, model_validator

from slinky_api.v1alpha1.common import ApiModel
from slinky_api.v1alpha1.rules import VALIDATIONS, Keywords, Text, cel, matching

__all__ = [
    "MAX_BYTES",
    "MAX_CHECKS",
    "MAX_PARAMETERS",
    "MAX_SCRIPT",
    "MAX_TIMEOUT",
    "PARAMETERS",
    "SWITCHES",
    "TEXTS",
    "BuiltInCheck",
    "Check",
    "CheckContext",
    "OnFail",
]

MAX_CHECKS: Final = 16
"""Checks of one NodeSet."""

MAX_SCRIPT: Final = 16_384
"""Characters of a script of the user's."""

MAX_BYTES: Final = 400_000
"""Bytes of all scripts and parameters of a NodeSet: a ConfigMap of 1 MiB has them twice while others are tried."""

MAX_PARAMETERS: Final = 16
"""Parameters of one check."""

MAX_TIMEOUT: Final = 35
"""Seconds: Slurm ends its HealthCheckProgram after 60, and what the checks say must be reported before that."""


class BuiltInCheck(StrEnum):
    """Checks that come with the operator."""

    GPU = "GPU"
    GPU_DIAGNOSTICS = "GPUDiagnostics"
    INFINIBAND = "InfiniBand"
    MOUNTS = "Mounts"
    MEMORY = "Memory"
    DISK = "Disk"
    TIME = "Time"


PARAMETERS: Final[dict[BuiltInCheck, tuple[str, ...]]] = {
    BuiltInCheck.GPU: ("COUNT", "MAX_ECC_ERRORS", "CLOCKS", "NVLINK"),
    BuiltInCheck.GPU_DIAGNOSTICS: (),
    BuiltInCheck.INFINIBAND: ("COUNT", "MIN_GBITS"),
    BuiltInCheck.MOUNTS: ("PATHS",),
    BuiltInCheck.MEMORY: ("MIN_FREE_MB", "MIN_TOTAL_MB"),
    BuiltInCheck.DISK: ("PATHS", "MAX_USED_PERCENT"),
    BuiltInCheck.TIME: ("MAX_OFFSET_MS",),
}
"""Parameters of each; docs/health-checks.md says what they mean."""


SWITCHES: Final = ("CLOCKS", "NVLINK")
"""Parameters that are true or false; all others but `TEXTS` are whole numbers."""

TEXTS: Final = ("PATHS",)

_SWITCH: Final = ("true", "false")
_NUMBER: Final = re.compile("[0-9]{1,9}", re.ASCII)


class CheckContext(StrEnum):
    """When a check runs."""

    HEALTH_CHECK = "HealthCheck"
    PROLOG = "Prolog"
    EPILOG = "Epilog"


class OnFail(StrEnum):
    """What becomes of a node on which a check fails."""

    DRAIN = "Drain"
    NOTHING = "Nothing"


_EITHER: Final = "give use, for a check that comes with the operator, or a script of your own"
_UNKNOWN: Final = "a check that comes with the operator has other parameters: docs/health-checks.md lists them"
_VALUE: Final = "CLOCKS and NVLINK must be true or false, PATHS folders, and other parameters whole numbers"
_PATHS: Final = "Mounts needs the parameter PATHS: the folders where something must be mounted"

_NAME: Final = matching(
    r"[a-z0-9]([a-z0-9-]*[a-z0-9])?",
    "must be lower-case letters, digits and '-', beginning and ending with a letter or digit",
)
_SHEBANG: Final = matching(r"#!/[^\r\x00]*", "must begin with #! and the full path of an interpreter, and have no CR")
_PARAMETER: Final = matching(r"[A-Z][A-Z0-9_]*", "must be capitals, digits and '_', as in MIN_FREE_MB")
_ONE_LINE: Final = matching(r"[^\x00-\x1f\x7f]*", "must be one line, without control characters")


def _known() -> str:
    """The parameters of all checks that come with the operator, as a CEL map."""
    lists = (f"'{use}': [{', '.join(map(repr, names))}]" for use, names in PARAMETERS.items() if names)
    return f"{{{', '.join(lists)}}}"


class Check(ApiModel):
    """A health check: a program that says whether a node is well.

    It ends with 0 if it is, and with 1 if it is not; its first line then says why. Anything else means that it could
    not be run, which drains no node.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "x-kubernetes-validations": [
                cel("has(self.use) != has(self.script)", _EITHER, field=".use"),
                cel(
                    "!has(self.use) || !has(self.parameters) || size(self.parameters) == 0 ||"
                    f" (self.use in {_known()} && self.parameters.all(name, name in {_known()}[self.use]))",
                    _UNKNOWN,
                    field=".parameters",
                ),
                cel(
                    "!has(self.use) || !has(self.parameters) || self.parameters.all(name,"
                    f" name in {list(SWITCHES)} ? self.parameters[name] in {list(_SWITCH)} :"
                    f" name in {list(TEXTS)} || self.parameters[name].matches('^{_NUMBER.pattern}$'))",
                    _VALUE,
                    field=".parameters",
                ),
                cel(
                    "!has(self.use) || self.use != 'Mounts' ||"
                    " (has(self.parameters) && 'PATHS' in self.parameters && self.parameters['PATHS'] != '')",
                    _PATHS,
                    field=".parameters",
                ),
            ]
        }
    )

    name: Annotated[str, Text(_NAME, at_least=1, at_most=32, by_pattern=True)]
    """Name of the check, in reasons and conditions."""
    use: BuiltInCheck | None = None
    """A check that comes with the operator: GPU, GPUDiagnostics, InfiniBand, Mounts, Memory, Disk or Time."""
    script: Annotated[str, Text(_SHEBANG, at_least=1, at_most=MAX_SCRIPT, by_pattern=True)] | None = None
    """A check of your own: a program for an interpreter that slurmd's image has. It runs as root in slurmd's container,
    with the parameters as variables CHECK_<name>."""
    contexts: Annotated[
        tuple[CheckContext, ...], Field(min_length=1, max_length=3), Keywords({"x-kubernetes-list-type": "set"})
    ] = (CheckContext.HEALTH_CHECK,)
    """When it runs. HealthCheck: when slurmd starts, and at each HealthCheckInterval, 90 seconds unless extraConf says
    otherwise. Prolog and Epilog: before and after each job. Default: HealthCheck."""
    timeout_seconds: Annotated[int, Field(ge=1, le=MAX_TIMEOUT), Keywords({"format": "int32"})] = 20
    """Seconds after which it is ended, and counts as one that could not be run. Default: 20."""
    on_fail: OnFail = OnFail.DRAIN
    """What a failed check does. Drain: the operator drains the node, within maxUnhealthy. Nothing: it is shown in the
    comment of the node in Slurm. Default: Drain."""
    parameters: Annotated[
        dict[
            Annotated[str, Text(_PARAMETER, at_most=32)],
            Annotated[str, Text(_ONE_LINE, at_most=1024, by_pattern=True)],
        ],
        Field(max_length=MAX_PARAMETERS),
        Keywords(
            {
                VALIDATIONS: [
                    cel(
                        f"self.all(name, size(name) <= 32 && {_PARAMETER.expression.replace('self', 'name')})",
                        f"names of parameters {_PARAMETER.message}",
                    )
                ]
            }
        ),
    ] = Field(default_factory=dict)
    """Settings of the check, by name; for a script of your own, as variables CHECK_<name>."""

    @property
    def size(self) -> int:
        """Bytes of what is the user's."""
        texts = (self.script or "", *self.parameters, *self.parameters.values())
        return sum(len(text.encode()) for text in texts)

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if (self.use is None) == (self.script is None):
            raise ValueError(_EITHER)
        if self.use is not None and not self.parameters.keys() <= {*PARAMETERS[self.use]}:
            raise ValueError(_UNKNOWN)
        if self.use is not None and not all(map(_is_usable, self.parameters, self.parameters.values())):
            raise ValueError(_VALUE)
        if self.use is BuiltInCheck.MOUNTS and not self.parameters.get("PATHS"):
            raise ValueError(_PATHS)
        return self


def _is_usable(name: str, value: str) -> bool:
    """Whether the script of a check can use a value: what it cannot compare, it would take for good."""
    if name in SWITCHES:
        return value in _SWITCH
    return name in TEXTS or _NUMBER.fullmatch(value) is not None
