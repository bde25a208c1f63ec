"""Metrics of a Cluster: slurmctld's own, and those of an exporter."""

from datetime import timedelta
from typing import Annotated, Final, Literal, Self

from pydantic import AfterValidator, ConfigDict, Field, model_validator

from slinky_api.v1alpha1.common import SET, ApiModel, Component, KeyRef, ServiceFragment
from slinky_api.v1alpha1.fields import Duration, Labels
from slinky_api.v1alpha1.rules import VALIDATIONS, Keywords, Rule, Text, cel
from slinky_api.v1alpha1.token import NOBODY, TokenUser

_PRIVILEGED: Final = ("root", "slurm")

_NOT_PRIVILEGED: Final = Rule(
    "must not be root or slurm: their tokens have full rights in the cluster",
    lambda text: text.lower() not in _PRIVILEGED,
    "!(self.lowerAscii() in ['root', 'slurm'])",
)

_POLL_MESSAGE: Final = "must be between 1s and 1h"


def _check_poll(interval: timedelta) -> timedelta:
    if not timedelta(seconds=1) <= interval <= timedelta(hours=1):
        raise ValueError(_POLL_MESSAGE)
    return interval


PollInterval = Annotated[
    Duration,
    AfterValidator(_check_poll),
    Keywords(
        {VALIDATIONS: [cel("duration(self) >= duration('1s') && duration(self) <= duration('1h')", _POLL_MESSAGE)]}
    ),
]
"""Time between two questions to Slurm."""


class ServiceMonitor(ApiModel):
    """A ServiceMonitor for the Prometheus operator."""

    enabled: bool = False
    """Whether to create it."""
    interval: Duration | None = None
    """Scrape interval."""
    scrape_timeout: Duration | None = None
    """Scrape timeout."""
    labels: Labels = Field(default_factory=dict)
    """Labels by which Prometheus selects it."""


OtherNames = Literal["slurm-exporter", "slurm-exporter-0.1", "slurmctld", "vpenso", "rivosinc"]

INCOMPATIBLE_NAMES: Final = (
    ("slurm-exporter-0.1", "slurmctld"),
    ("rivosinc", "slurm-exporter-0.1"),
    ("slurmctld", "vpenso"),
)
"""Names that cannot be served on one page."""


def _names_message(pair: tuple[str, str]) -> str:
    why = "both have metrics of one name, with different labels or meanings"
    return f"{pair[0]} and {pair[1]} cannot be enabled together: {why}"


def _check_names(names: tuple[str, ...]) -> tuple[str, ...]:
    for pair in INCOMPATIBLE_NAMES:
        if set(pair) <= set(names):
            raise ValueError(_names_message(pair))
    return names


_NAMES_RULES: Final = Keywords(
    {
        VALIDATIONS: [
            cel(f"!('{pair[0]}' in self && '{pair[1]}' in self)", _names_message(pair)) for pair in INCOMPATIBLE_NAMES
        ]
    }
)


class Exporter(Component):
    """slurm-exporter: one pod that asks slurmrestd, and serves what it says to any number of scrapers."""

    enabled: bool = False
    """Whether to run it."""
    service: ServiceFragment | None = None
    """The Service <cluster>-exporter, port 8080."""
    service_monitor: ServiceMonitor = Field(default_factory=ServiceMonitor)
    """How Prometheus finds it: by a ServiceMonitor <cluster>-exporter-metrics. Needs the same as that of slurmctld's
    own metrics."""
    username: Annotated[TokenUser, Text(_NOT_PRIVILEGED, at_least=1, at_most=64)] | None = None
    """The Slurm user that it asks as, by a Token <cluster>-exporter that the operator makes. Where PrivateData hides
    jobs, users or usage, name a user with AdminLevel=Operator in slurmdbd. The Cluster's own namespace may have tokens
    of this user. Not with spec.server. Default: nobody."""
    token_ref: KeyRef | None = None
    """Only with spec.server, and required there: Secret with a token for that Slurm (default key auth-token), of a user
    that may read and not write. The pod mounts that key alone. The Secret must name the server in its annotation
    cluster.slinky.slurm.net/server, unless it contains only a JWT of Slurm under auth-token."""
    interval: PollInterval | None = None
    """Time between two polls of nodes, jobs and partitions. Slurm is asked as often whatever the number of scrapers.
    Default: 10s."""
    nodes: Annotated[int, Field(ge=0, le=100_000)] = 10_000
    """Nodes with metrics of their own; with 0, only sums."""
    users: Annotated[int, Field(ge=0, le=10_000)] = 0
    """Users with metrics of their own: those with most CPUs. The others are added up. Default: none."""
    accounts: Annotated[int, Field(ge=0, le=10_000)] = 0
    """The same for accounts. Default: none."""
    call_users: Annotated[int, Field(ge=0, le=10_000)] = 0
    """Users with counters of their remote procedure calls: those with most. Default: none."""
    names: Annotated[tuple[OtherNames, ...], Field(max_length=5), SET, AfterValidator(_check_names), _NAMES_RULES] = ()
    """Names of other exporters to serve beside its own, for dashboards that know them: slurm-exporter (those of
    Slinky's 0.3), slurm-exporter-0.1 (those of its 0.1 and 0.2), slurmctld (those of the endpoint of Slurm 26.05),
    vpenso and rivosinc (those of their prometheus-slurm-exporter: Grafana's dashboards 4323 and 19835). Default:
    none."""

    @property
    def slurm_user(self) -> str:
        """The user of its token."""
        return self.username or NOBODY


_MONITOR_MESSAGE: Final = "serviceMonitor.enabled needs enabled: without it slurmctld serves no metrics"


class Metrics(ApiModel):
    """Metrics of slurmctld itself (Slurm 25.11 and later), and of an exporter (every Slurm)."""

    model_config = ConfigDict(
        json_schema_extra={
            "x-kubernetes-validations": [
                cel(
                    "(has(self.enabled) && self.enabled) || !has(self.serviceMonitor)"
                    " || !has(self.serviceMonitor.enabled) || !self.serviceMonitor.enabled",
                    _MONITOR_MESSAGE,
                    field=".serviceMonitor",
                )
            ]
        }
    )

    enabled: bool = False
    """Whether slurmctld serves its own."""
    service_monitor: ServiceMonitor = Field(default_factory=ServiceMonitor)
    """How Prometheus finds them: by a ServiceMonitor <cluster>-controller-metrics. Needs the CRDs of the Prometheus
    Operator, and rbac.serviceMonitors in the values of the operator's chart; Degraded says what is missing."""
    exporter: Exporter = Field(default_factory=Exporter)
    """A program of the operator's image that serves what slurmrestd says as metrics."""

    @model_validator(mode="after")
    def _monitored(self) -> Self:
        if self.service_monitor.enabled and not self.enabled:
            raise ValueError(_MONITOR_MESSAGE)
        return self
