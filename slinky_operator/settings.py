"""Settings of the operator process: one frozen object from flags and environment.

Each field is a flag (`--lease-name`) and an environment variable (`SLURM_OPERATOR_LEASE_NAME`); the flag takes
precedence. Default images are one field, with a flag for each container of `slinky_api.containers` that has an image.
Nothing else reads the environment. Settings of a single Cluster or NodeSet are in its spec, not here.
"""

from __future__ import annotations

import argparse
import os
import socket
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, Self, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from slinky_api.containers import with_images

ENVIRONMENT_PREFIX = "SLURM_OPERATOR_"

IMAGE: Final = "image_"
"""Before the name of a container: the option of its default image."""

ALL = "*"
"""In place of names: all there are."""

OVERRIDE: Final = r"^[-a-z0-9]{1,63}/[-a-z0-9.]{1,253}=http://(127\.0\.0\.1|localhost|\[::1\]):[0-9]{1,5}$"
"""A Cluster, and a port of this machine: its tokens go there whatever its Secrets allow."""

INSIDE: Final = "KUBERNETES_SERVICE_HOST"
"""The environment variable that the kubelet sets in every container."""

Seconds = Annotated[float, Field(gt=0)]
Port = Annotated[int, Field(ge=0, le=65535)]


class SettingsError(Exception):
    """A flag or an environment variable has no usable value; the text names it."""


class Settings(BaseModel):
    """How this process runs."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    # Kubernetes

    kubeconfig: Path | None = Field(
        default=None, description="Kubeconfig file. Default: the service account, else the standard locations."
    )
    namespaces: tuple[str, ...] = Field(
        default=(), description="Namespaces to watch, separated by commas; none means all."
    )
    slinky_namespaces: tuple[str, ...] = Field(
        default=("slinky",),
        description="Namespaces in which Slinky's own operator may run, separated by commas. While its Lease is "
        "renewed in one of these, or in the namespace of this operator's Lease, this operator does not start. Leases "
        "of that name elsewhere are only logged.",
    )
    other_operators: tuple[Annotated[str, Field(pattern=r"^[-a-z0-9]{1,63}/[-a-z0-9.]{1,253}$")], ...] = Field(
        default=("slurm-operator/slurm-operator",),
        description="Namespace and name, with a slash between, of Leases of other releases of this operator to look at "
        "before this one begins, separated by commas. With all namespaces every such Lease is found; with some, those "
        "in these, in the namespace of this operator's Lease, and these here.",
    )
    service_account: str = Field(
        default="",
        description="Name of the operator's ServiceAccount, in the namespace of its Lease: by its rights other "
        "releases believe what the Lease says.",
    )
    cluster_domain: str = Field(
        default="",
        description="DNS domain of the Kubernetes cluster, for the search lists of pods; empty to read it from "
        "the operator's own resolv.conf.",
    )
    watch_nodes: bool = Field(
        default=True,
        description="Whether to watch Nodes, which needs cluster-wide rights; without it, cordoned Nodes are not "
        "noticed, and NodeSets in DaemonSet mode get no pods.",
    )
    node_labels_config_map: Annotated[str, Field(pattern=r"^([-a-z0-9]+/[-a-z0-9.]+)?$")] = Field(
        default="",
        description="Namespace and name, with a slash between, of a ConfigMap with labels and extended resources of "
        "Nodes; empty to write none. Needs watch_nodes, all namespaces, and the right to patch the status of Nodes.",
    )
    node_labels_from_slurm: bool = Field(
        default=False,
        description="Whether Nodes with slurmd pods also get labels with the partitions, features and GRES that Slurm "
        "shows of these. Needs node_labels_config_map; the ConfigMap need not exist. Needs node_labels_clusters.",
    )
    node_labels_clusters: tuple[Annotated[str, Field(pattern=r"^(\*|[-a-z0-9]{1,63}/[-a-z0-9.]{1,253})$")], ...] = (
        Field(
            default=(),
            description="Namespace and name, with a slash between, of the Clusters whose Slurm gives Nodes labels, "
            "separated by commas, or * for all: users who may edit such a Cluster decide on these labels.",
        )
    )
    request_timeout: Seconds = Field(default=30.0, description="Seconds for one request to the API server.")
    max_requests_in_flight: Annotated[int, Field(ge=1)] = Field(
        default=50, description="Concurrent requests to the API server."
    )
    resync_interval: Seconds = Field(
        default=300.0, description="Seconds between comparisons of the cached custom resources with a fresh list."
    )
    namespace_budget: Annotated[int, Field(ge=8, le=65536)] = Field(
        default=128,
        description="Memory in MiB that the cached objects of one namespace may take: those of the operator's kinds, "
        "and those that carry its labels, each. What does not fit is left out, and the objects concerned wait and say "
        "so. A slurmd pod counts as about 20 KiB.",
    )
    memory_limit: Annotated[int, Field(ge=0)] = Field(
        default=0,
        description="Memory limit of the operator's container in MiB, 0 for none. Cached objects may take half of it: "
        "each namespace has an equal share, and the largest gives way when all together take more.",
    )

    # Leadership

    leader_election: bool = Field(
        default=True, description="Whether replicas elect a leader; without it only one process may run."
    )
    lease_name: str = Field(default="slurm-operator", min_length=1, description="Name of the Lease.")
    lease_namespace: str = Field(
        default="slurm-operator", min_length=1, description="Namespace of the Lease; normally the operator's own."
    )
    lease_duration: Seconds = Field(
        default=15.0, description="Seconds after which another replica may take over from an unresponsive one."
    )
    lease_renew_deadline: Seconds = Field(
        default=10.0,
        description="Seconds without renewal after which the leader stops writing; it exits if another process leads, "
        "or after four times lease_duration.",
    )
    lease_retry_period: Seconds = Field(default=2.0, description="Seconds between attempts to get or renew the Lease.")
    identity: str = Field(
        default_factory=lambda: f"{socket.gethostname()}_{uuid.uuid4().hex[:8]}",
        min_length=1,
        description="Name of this process in the Lease and in Events; must be unique.",
    )

    # Work

    cluster_workers: Annotated[int, Field(ge=1)] = Field(default=4, description="Clusters reconciled concurrently.")
    nodeset_workers: Annotated[int, Field(ge=1)] = Field(default=8, description="NodeSets reconciled concurrently.")
    autoscaling_workers: Annotated[int, Field(ge=1)] = Field(
        default=16, description="Clusters whose NodeSets are scaled concurrently."
    )
    token_workers: Annotated[int, Field(ge=1)] = Field(default=2, description="Tokens reconciled concurrently.")
    slurmjobs: bool = Field(
        default=False, description="Whether to run SlurmJobs, whose kind must be installed: jobs as objects."
    )
    sylabs_jobs: bool = Field(
        default=False,
        description="Whether to run objects of the job kinds of sylabs' operators, which must be installed, as "
        "SlurmJobs. Needs slurmjobs.",
    )
    sylabs_clusters: tuple[Annotated[str, Field(pattern=r"^[-a-z0-9]{1,63}/[-a-z0-9.]{1,253}$")], ...] = Field(
        default=(),
        description="Namespace and name, with a slash between, of Clusters that run objects of these kinds of all "
        "namespaces to which their spec.jobs grants a tenant, separated by commas. Any other Cluster runs those of its "
        "own namespace, and of Namespaces that name it in the annotation cluster.slinky.slurm.net/sylabs-jobs. Needs "
        "sylabs_jobs.",
    )
    virtual_nodes_clusters: tuple[Annotated[str, Field(pattern=r"^(\*|[-a-z0-9]{1,63}/[-a-z0-9.]{1,253})$")], ...] = (
        Field(
            default=(),
            description="Namespace and name, with a slash between, of the Clusters whose partitions may be Kubernetes "
            "Nodes (spec.jobs.virtualNodes), separated by commas, or * for all; none switches virtual nodes off. Needs "
            "slurmjobs, and all namespaces.",
        )
    )
    drain_requests_namespace: Annotated[str, Field(pattern=r"^[-a-z0-9]{0,63}$")] = Field(
        default="",
        description="Namespace of NVSentinel's DrainRequests: the Slurm nodes on the Kubernetes Node of each are "
        "drained, and DrainComplete is written once they are proven to hold no job. Empty: they mean nothing. Needs "
        "watch_nodes, all namespaces, and the rights to list them and to patch their status.",
    )
    machine_namespaces: tuple[Annotated[str, Field(pattern=r"^(\*|[-a-z0-9]{1,63})$")], ...] = Field(
        default=(),
        description="Namespaces whose NodeSets may have machines of bad Nodes rebooted or deleted "
        "(spec.health.replace.policy), separated by commas, or * for all; none switches that off. Needs watch_nodes, "
        "and the rights of the chart slurm-node-life.",
    )
    machine_label: Annotated[str, Field(pattern=r"^([-A-Za-z0-9_./]{1,317}=[-A-Za-z0-9_.]{0,63})?$")] = Field(
        default="",
        description="Label, as key=value, that a Node must have for that; empty: any Node. Needs machine_namespaces.",
    )
    reboot_by: Annotated[str, Field(pattern=r"^(RebootNode|[-a-z0-9.]{1,253}/[-A-Za-z0-9_.]{1,63})?$")] = Field(
        default="",
        description="Who reboots machines: RebootNode for who serves NVSentinel's kind of that name, or the key of an "
        "annotation of Nodes on which a daemon of the site acts. Empty: nobody. Needs machine_namespaces.",
    )
    delete_nodes: bool = Field(
        default=False,
        description="Whether a Node without a Machine of Cluster API is deleted itself, for a machine autoscaler that "
        "replaces its machine then. Needs machine_namespaces.",
    )
    bridge_clusters: tuple[Annotated[str, Field(pattern=r"^(\*|[-a-z0-9]{1,63}/[-a-z0-9.]{1,253})$")], ...] = Field(
        default=(),
        description="Namespace and name, with a slash between, of the Clusters whose Slurm may place pods on "
        "Kubernetes Nodes (spec.jobs.bridge), separated by commas, or * for all; none switches the bridge off. Needs "
        "slurmjobs, watch_nodes, and all namespaces.",
    )
    bridge_devices: bool = Field(
        default=False,
        description="Whether these Clusters may also give devices to pods by ResourceClaims (deviceClass in "
        "spec.jobs.bridge.gres): ResourceSlices and ResourceClaims are watched. Needs bridge_clusters, and Kubernetes "
        "1.34.",
    )
    virtual_nodes_address: Annotated[str, Field(pattern=r"^[0-9a-fA-F.:]*$", max_length=45)] = Field(
        default="",
        description="IP address of this pod, at which the API server reaches the kubelet API of virtual Nodes. Needed "
        "with virtual_nodes_clusters.",
    )
    virtual_nodes_pod: Annotated[str, Field(pattern=r"^[-a-z0-9.]*$", max_length=253)] = Field(
        default="",
        description="Name of this pod in lease_namespace, by which the API server is asked whether it reaches the "
        "kubelet API. Without it that is not asked.",
    )
    virtual_nodes_port: Annotated[int, Field(ge=1, le=65535)] = Field(
        default=10350, description="Port of the kubelet API of virtual Nodes."
    )
    virtual_nodes_certificate: Path | None = Field(
        default=None,
        description="Folder with tls.crt and tls.key of the kubelet API, read again when they change. Default: a "
        "certificate is made at each start, for API servers that do not verify those of kubelets.",
    )
    virtual_nodes_client_ca: Path | None = Field(
        default=None,
        description="File with the authority of the client certificate with which the API server comes to kubelets. "
        "Default: that of ConfigMap extension-apiserver-authentication in kube-system.",
    )
    slurmjob_workers: Annotated[int, Field(ge=1)] = Field(
        default=8,
        description="SlurmJobs, and objects of each old kind, reconciled concurrently. One namespace gets three "
        "quarters of the workers of each kind at most, so that it does not hold up others.",
    )
    slurmjob_resubmissions: Annotated[int, Field(ge=1)] = Field(
        default=30,
        description="SlurmJobs of one namespace that are submitted again in a minute after Slurm has refused them.",
    )
    loginset_workers: Annotated[int, Field(ge=1)] = Field(default=2, description="LoginSets reconciled concurrently.")
    shutdown_grace: Seconds = Field(
        default=20.0,
        description="Seconds to finish running reconciliations after SIGTERM, before releasing the Lease.",
    )
    max_concurrent_startup: Annotated[int, Field(ge=1)] = Field(
        default=1000,
        description="Pods of a NodeSet that may be starting, not yet registered, at a time; default for its spec.",
    )
    registration_patience: Annotated[float, Field(ge=30)] = Field(
        default=300.0,
        description="Seconds within which a running slurmd must register with Slurm before its pod is recreated; at "
        "least 30.",
    )

    # Slurm

    node_poll_interval: Seconds = Field(
        default=1.0, description="Minimum seconds between two polls for changed nodes of a Cluster."
    )
    node_poll_interval_max: Seconds = Field(
        default=30.0, description="Maximum seconds between two such polls, when full answers are expensive."
    )
    external_clusters_per_namespace: Annotated[int, Field(ge=0)] = Field(
        default=20,
        description="Clusters with server of one namespace that the operator connects to, the oldest first; the others "
        "say so in their conditions. 0 for any number.",
    )
    slurm_timeout: Seconds = Field(default=30.0, description="Seconds for one request to slurmrestd.")
    slurmrestd_override: tuple[Annotated[str, Field(pattern=OVERRIDE)], ...] = Field(
        default=(),
        description="NAMESPACE/CLUSTER=URL, separated by commas: where slurmrestd of a Cluster is asked, in place of "
        "its Service, for an operator on a developer's machine. Tokens of the Cluster are sent there, so the URL is "
        "that of a port-forward on this machine: http://127.0.0.1:6820. Refused inside Kubernetes.",
    )
    slurm_answer_limit: Annotated[int, Field(ge=1, le=4096)] = Field(
        default=128,
        description="Maximum size of one answer of slurmrestd in MiB; a larger one is an error, but jobs are then read "
        "one by one. Concurrent answers together may have 1.5 times as much. A node takes about 2.5 kB, a job 6 kB.",
    )

    # Images

    images: Mapping[str, Annotated[str, Field(min_length=1)]] = Field(
        default_factory=dict,
        validate_default=True,
        description="Default images by container, each a flag (--image-slurmd) and a variable of its own.",
    )
    image_agent: str = Field(
        default="slinky/slurm-operator:0.2.0",
        min_length=1,
        description="Image of the agent beside slurmctld, of the server of jobLogs beside slurmd, of what tells the "
        "keys of sackd in login pods, and of pods with output of SlurmJobs; normally the operator's own.",
    )
    image_pull_policy: Literal["", "Always", "IfNotPresent", "Never"] = Field(
        default="", description="Pull policy for default images; empty for the default of Kubernetes."
    )

    daemon_priority_class: str = Field(
        default="",
        description="PriorityClass of the pods of daemons of Clusters, except the exporter, whose templates name none. "
        "Pods of nodes have that of their NodeSet's template.",
    )

    # Process

    health_host: str | None = Field(default=None, description="Address for health and metrics; none means all.")
    health_port: Port = Field(default=8080, description="Port for health and metrics.")
    log_format: Literal["text", "json"] = Field(default="text", description="Log lines for people or for machines.")
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field(default="INFO", description="Minimum level to log.")

    @field_validator(
        "namespaces",
        "slinky_namespaces",
        "other_operators",
        "sylabs_clusters",
        "node_labels_clusters",
        "virtual_nodes_clusters",
        "bridge_clusters",
        "machine_namespaces",
        "slurmrestd_override",
        mode="before",
    )
    @classmethod
    def _split(cls, value: object) -> object:
        if isinstance(value, str):
            return tuple(dict.fromkeys(part.strip() for part in value.split(",") if part.strip()))
        return value

    @field_validator("images")
    @classmethod
    def _fill(cls, value: Mapping[str, str]) -> Mapping[str, str]:
        return MappingProxyType({one.name: one.default_image for one in with_images()} | dict(value))

    @field_validator("log_level", mode="before")
    @classmethod
    def _upper(cls, value: object) -> object:
        return value.upper() if isinstance(value, str) else value

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        if not self.lease_retry_period < self.lease_renew_deadline < self.lease_duration:
            raise ValueError("lease_retry_period must be below lease_renew_deadline, and that below lease_duration")
        if self.node_poll_interval > self.node_poll_interval_max:
            raise ValueError("node_poll_interval must not exceed node_poll_interval_max")
        if self.node_labels_config_map and (self.namespaces or not self.watch_nodes):
            raise ValueError("node_labels_config_map needs watch_nodes, and all namespaces")
        if self.node_labels_from_slurm and not self.node_labels_config_map:
            raise ValueError("node_labels_from_slurm needs node_labels_config_map")
        if self.node_labels_from_slurm != bool(self.node_labels_clusters):
            raise ValueError("node_labels_from_slurm and node_labels_clusters need each other")
        if self.sylabs_jobs and not self.slurmjobs:
            raise ValueError("sylabs_jobs needs slurmjobs")
        if self.sylabs_clusters and not self.sylabs_jobs:
            raise ValueError("sylabs_clusters needs sylabs_jobs")
        if len(self.slurmrestd_overrides) < len(self.slurmrestd_override):
            raise ValueError("slurmrestd_override names a Cluster twice")
        return self

    @model_validator(mode="after")
    def _check_virtual_nodes(self) -> Self:
        if self.virtual_nodes_clusters and (self.namespaces or not self.slurmjobs):
            raise ValueError("virtual_nodes_clusters needs slurmjobs, and all namespaces")
        if self.virtual_nodes_clusters and not self.virtual_nodes_address:
            raise ValueError("virtual_nodes_clusters needs virtual_nodes_address, the IP address of this pod")
        return self

    @model_validator(mode="after")
    def _check_drain_requests(self) -> Self:
        if self.drain_requests_namespace and (self.namespaces or not self.watch_nodes):
            raise ValueError("drain_requests_namespace needs watch_nodes, and all namespaces")
        return self

    @model_validator(mode="after")
    def _check_machines(self) -> Self:
        if self.machine_namespaces and (self.namespaces or not self.watch_nodes):
            raise ValueError("machine_namespaces needs watch_nodes, and all namespaces")
        if (self.machine_label or self.reboot_by or self.delete_nodes) and not self.machine_namespaces:
            raise ValueError("machine_label, reboot_by and delete_nodes need machine_namespaces")
        return self

    @model_validator(mode="after")
    def _check_bridge(self) -> Self:
        if self.bridge_clusters and (self.namespaces or not self.slurmjobs or not self.watch_nodes):
            raise ValueError("bridge_clusters needs slurmjobs, watch_nodes, and all namespaces")
        if self.bridge_devices and not self.bridge_clusters:
            raise ValueError("bridge_devices needs bridge_clusters")
        return self

    @property
    def slurmrestd_overrides(self) -> Mapping[tuple[str, str], str]:
        """URLs in place of those of Clusters, by namespace and name."""
        found = {}
        for one in self.slurmrestd_override:
            cluster, _, url = one.partition("=")
            namespace, _, name = cluster.partition("/")
            found[namespace, name] = url
        return found

    @classmethod
    def load(cls, arguments: Sequence[str] | None = None, environ: Mapping[str, str] | None = None) -> Self:
        """Read flags and environment.

        Parameters
        ----------
        arguments
            Command line without the program's name; `None` for the process's own.
        environ
            Environment; `None` for the process's own.

        Returns
        -------
        Settings
            The checked settings.

        Raises
        ------
        SettingsError
            If a value cannot be used.
        SystemExit
            On `--help` or an unknown flag, as argparse does.
        """
        environ = os.environ if environ is None else environ
        values: dict[str, Any] = {}
        for name in _options(cls.model_fields):
            value = environ.get(ENVIRONMENT_PREFIX + name.upper())
            if value is not None:
                values[name] = value
        values |= vars(cls.parser().parse_args(arguments))
        named = {one.name: values.pop(IMAGE + one.name, None) for one in with_images()}
        values["images"] = {name: image for name, image in named.items() if image is not None}
        try:
            settings = cls.model_validate(values)
        except ValidationError as error:
            raise SettingsError(_explain(error)) from error
        if settings.slurmrestd_override and environ.get(INSIDE):
            raise SettingsError(
                "--slurmrestd-override: this process runs inside Kubernetes, where slurmrestd is asked at its Service; "
                "the flag is for an operator on a developer's machine"
            )
        return settings

    @classmethod
    def parser(cls) -> argparse.ArgumentParser:
        """Create the command line parser; its result contains only flags that were given."""
        parser = argparse.ArgumentParser(
            prog="slurm-operator",
            description="Runs Slurm in Kubernetes.",
            epilog=f"Each flag can be given as an environment variable: {ENVIRONMENT_PREFIX}LEASE_NAME=…",
            argument_default=argparse.SUPPRESS,
        )
        for name, field in _options(cls.model_fields).items():
            flag = "--" + name.replace("_", "-")
            text = (field.description or "").replace("%", "%%") + _default_text(field)
            if field.annotation is bool:
                parser.add_argument(flag, action=argparse.BooleanOptionalAction, help=text)
            elif get_origin(field.annotation) is Literal:
                parser.add_argument(flag, metavar="|".join(filter(None, get_args(field.annotation))), help=text)
            else:
                parser.add_argument(flag, metavar=name.rsplit("_", 1)[-1].upper(), help=text)
        return parser


def _options(fields: Mapping[str, FieldInfo]) -> Mapping[str, FieldInfo]:
    """What has a flag and a variable: each field, and in place of `images` each image."""
    found: dict[str, FieldInfo] = {}
    for name, field in fields.items():
        if name != "images":
            found[name] = field
            continue
        for one in with_images():
            found[IMAGE + one.name] = FieldInfo(
                annotation=str, default=one.default_image, description=f"Default image of {one.title}."
            )
    return found


def _default_text(field: FieldInfo) -> str:
    if field.default is PydanticUndefined or field.default in (None, "", ()):
        return ""
    return f" Default: {field.default}."


def _explain(error: ValidationError) -> str:
    lines = []
    for detail in error.errors():
        first, *below = map(str, detail["loc"]) if detail["loc"] else ("",)
        name = IMAGE + below[0] if first == "images" and below else first
        flag = f"--{name.replace('_', '-')}: " if name else ""
        lines.append(f"{flag}{detail['msg'].removeprefix('Value error, ')}")
    return "; ".join(lines)
