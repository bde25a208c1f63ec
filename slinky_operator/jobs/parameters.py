"""The rest of what sbatch can ask for, by the names that slurmrestd has for it.

``parameters: {nice: 10, mail_type: [END]}``. Each becomes the option of sbatch that fills this key, so that the same
rules hold for it as for a line of a script, in all data parsers. Every key of every data parser is either here or in
`REFUSED`: what is not known to do no harm is not passed on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from slinky_operator.jobs import parameter_values as values
from slinky_operator.jobs.options import Wish
from slinky_operator.jobs.refusal import InvalidJob

Values = Mapping[str, Any]
Options = tuple[tuple[str, str | None], ...]


@dataclass(frozen=True, slots=True)
class Parameter:
    """One key of slurmrestd, or some that are one option of sbatch together.

    Parameters
    ----------
    options
        All options of sbatch that fill the keys.
    written
        The options, and their values, for the values of the keys that are given; ValueError for a value that is wrong.
    """

    options: frozenset[str]
    written: Callable[[Values], Options]


def _one(key: str, option: str, text: Callable[[Any], str]) -> tuple[tuple[str, ...], Parameter]:
    """Give a key that is the value of one option."""
    return (key,), Parameter(frozenset({option}), lambda given: ((option, text(given[key])),))


def _flag(key: str, option: str) -> tuple[tuple[str, ...], Parameter]:
    """Give a key that is an option without a value; false takes it away."""
    return (key,), Parameter(frozenset({option}), lambda given: ((option, None),) if values.boolean(given[key]) else ())


def _either(key: str, true: tuple[str, str | None], false: tuple[str, str | None]) -> tuple[tuple[str, ...], Parameter]:
    """Give a key that is one option if true, and another one if false."""
    return (key,), Parameter(
        frozenset({true[0], false[0]}), lambda given: (true if values.boolean(given[key]) else false,)
    )


def _words(key: str, known: Mapping[str, tuple[str, str | None]]) -> tuple[tuple[str, ...], Parameter]:
    """Give a key with words, each of which is an option of its own."""

    def written(given: Values) -> Options:
        return tuple(known[word] for word in values.words(given[key], known))

    return (key,), Parameter(frozenset(option for option, _ in known.values()), written)


def _joint(keys: tuple[str, ...], option: str, text: Callable[[Values], str]) -> tuple[tuple[str, ...], Parameter]:
    """Give keys that are the value of one option together; the first of them must be there."""

    def written(given: Values) -> Options:
        if keys[0] not in given:
            raise ValueError(f"means nothing without {keys[0]}")
        return ((option, text(given)),)

    return keys, Parameter(frozenset({option}), written)


_FLAGS: Final = {
    "CONSOLIDATE_SEGMENTS": ("--consolidate-segments", None),
    "EXPEDITED_REQUEUE": ("--requeue", "expedite"),
    "GRES_BINDING_DISABLED": ("--gres-flags", "disable-binding"),
    "GRES_BINDING_ENFORCED": ("--gres-flags", "enforce-binding"),
    "KILL_INVALID_DEPENDENCY": ("--kill-on-invalid-dep", "yes"),
    "NO_KILL_INVALID_DEPENDENCY": ("--kill-on-invalid-dep", "no"),
    "PREFER_MINIMUM_NODE_COUNT": ("--use-min-nodes", None),
    "SPREAD_JOB": ("--spread-job", None),
    "SPREAD_SEGMENTS": ("--spread-segments", None),
    "STEPMGR_ENABLED": ("--stepmgr", None),
}
_SHARED: Final = {
    "none": ("--exclusive", None),
    "user": ("--exclusive", "user"),
    "mcs": ("--exclusive", "mcs"),
    "topo": ("--exclusive", "topo"),
    "oversubscribe": ("--oversubscribe", None),
}

_TABLE: Final = (
    _one("account_gather_frequency", "--acctg-freq", values.text),
    _one("batch_features", "--batch", values.text),
    _one("begin_time", "--begin", values.moment),
    _one("burst_buffer", "--bb", values.text),
    _one("cluster_constraint", "--cluster-constraint", values.text),
    _one("comment", "--comment", values.text),
    _one("container", "--container", values.text),
    _one("container_id", "--container-id", values.text),
    _one("container_type", "--container-type", values.text),
    _flag("contiguous", "--contiguous"),
    _one("core_specification", "--core-spec", values.count),
    _one("cores_per_socket", "--cores-per-socket", values.count),
    _one("cpu_frequency", "--cpu-freq", values.text),
    _one("cpus_per_tres", "--cpus-per-gpu", values.of_gpu),
    _one("deadline", "--deadline", values.moment),
    _one("delay_boot", "--delay-boot", values.seconds),
    _one("dependency", "--dependency", values.text),
    _one("distribution", "--distribution", values.text),
    _one("excluded_nodes", "--exclude", values.names),
    _words("flags", _FLAGS),
    _flag("hold", "--hold"),
    _either("kill_on_node_fail", ("--no-kill", "off"), ("--no-kill", None)),
    _joint(("kill_warning_signal", "kill_warning_delay", "kill_warning_flags"), "--signal", values.signal),
    _one("licenses", "--licenses", values.text),
    _one("mail_type", "--mail-type", values.mail),
    _one("mail_user", "--mail-user", values.text),
    _one("mcs_label", "--mcs-label", values.text),
    _joint(("memory_binding_type", "memory_binding"), "--mem-bind", values.memory_binding),
    _one("memory_per_cpu", "--mem-per-cpu", values.number),
    _one("memory_per_tres", "--mem-per-gpu", values.of_gpu),
    _joint(("memory_update_margin", "memory_update_delay"), "--mem-update", values.memory_update),
    _one("minimum_cpus_per_node", "--mincpus", values.count),
    _one("name", "--job-name", values.text),
    _one("network", "--network", values.text),
    _one("nice", "--nice", values.integer),
    _one("ntasks_per_tres", "--ntasks-per-gpu", values.count),
    _one("oom_kill_step", "--oom-kill-step", values.count),
    _one("open_mode", "--open-mode", values.open_mode),
    _flag("overcommit", "--overcommit"),
    _one("prefer", "--prefer", values.text),
    _one("priority", "--priority", values.number),
    _one("profile", "--profile", values.profile),
    _flag("reboot", "--reboot"),
    _one("required_nodes", "--nodelist", values.names),
    _joint(("required_switches", "wait_for_switch"), "--switches", values.switches),
    _one("reservation", "--reservation", values.text),
    _one("segment_size", "--segment", values.number),
    _one("selinux_context", "--context", values.text),
    _words("shared", _SHARED),
    _one("sockets_per_node", "--sockets-per-node", values.count),
    _one("standard_input", "--input", values.text),
    _one("tasks_per_core", "--ntasks-per-core", values.count),
    _one("tasks_per_node", "--ntasks-per-node", values.count),
    _one("tasks_per_socket", "--ntasks-per-socket", values.count),
    _one("temporary_disk_per_node", "--tmp", values.count),
    _one("thread_specification", "--thread-spec", values.count),
    _one("threads_per_core", "--threads-per-core", values.count),
    _one("time_minimum", "--time-min", values.minutes),
    _one("tres_bind", "--tres-bind", values.text),
    _one("tres_freq", "--gpu-freq", values.frequency),
    _one("tres_per_job", "--gpus", values.gpus),
    _one("tres_per_socket", "--gpus-per-socket", values.gpus),
    _one("tres_per_task", "--tres-per-task", values.text),
    _either("wait_all_nodes", ("--wait-all-nodes", "1"), ("--wait-all-nodes", "0")),
    _one("wckey", "--wckey", values.text),
)

PARAMETERS: Final[Mapping[str, Parameter]] = {key: parameter for keys, parameter in _TABLE for key in keys}
"""What becomes of each key that is taken."""

_FIELDS: Final = {
    "account": "spec.account", "argv": "spec.args", "array": "spec.array", "constraints": "spec.features",
    "cpus_per_task": "spec.cpusPerTask", "current_working_directory": "spec.workingDirectory",
    "environment": "spec.env", "exclusive": "parameters.shared", "maximum_nodes": "spec.nodes, such as 2-4",
    "memory_per_node": "spec.memory", "minimum_nodes": "spec.nodes, such as 2-4", "nodes": "spec.nodes",
    "oversubscribe": "parameters.shared", "partition": "spec.partition", "qos": "spec.qos", "requeue": "spec.requeue",
    "script": "spec.script", "standard_error": "spec.error", "standard_output": "spec.output", "tasks": "spec.tasks",
    "time_limit": "spec.time", "tres_per_node": "spec.gres",
}  # fmt: skip
IDENTITY: Final = "a job belongs to the user that the Cluster's administrator has chosen for the namespace"
ONE_CLUSTER: Final = "a job is for the Cluster of its object"
_INTERACTIVE: Final = "is for interactive jobs"
_SLURMS_OWN: Final = "is Slurm's own"
_NO_OPTION: Final = "sbatch has no such option"

REFUSED: Final[Mapping[str, str]] = {
    **{key: f"write {field}" for key, field in _FIELDS.items()},
    "admin_comment": "is for Slurm's administrators",
    "allocation_node_list": _INTERACTIVE,
    "allocation_node_port": _INTERACTIVE,
    "clusters": ONE_CLUSTER,
    "cpu_binding": "is an option of srun: use it in the script",
    "cpu_binding_flags": "is an option of srun: use it in the script",
    "crontab": "a job that repeats is no single job",
    "distribution_plane_size": "write parameters.distribution: plane=4",
    "end_time": "write spec.time, or parameters.deadline",
    "extra": "the operator marks there which object a job belongs to",
    "group_id": IDENTITY,
    "hetjob_group": _SLURMS_OWN,
    "immediate": _INTERACTIVE,
    "job_id": "slurmctld gives jobs their numbers",
    "maximum_cpus": _NO_OPTION,
    "minimum_boards_per_node": _NO_OPTION,
    "minimum_cpus": "follows from tasks and cpusPerTask",
    "minimum_sockets_per_board": _NO_OPTION,
    "power_flags": "Slurm does nothing with it",
    "reserve_ports": _NO_OPTION,
    "resv_mpi_ports": _NO_OPTION,
    "rlimits": "write ulimit in the script",
    "site_factor": "is for Slurm's administrators",
    "spank_environment": "would reach programs that run as root",
    "step_id": _SLURMS_OWN,
    "tasks_per_board": _NO_OPTION,
    "user_id": IDENTITY,
    "x11": _INTERACTIVE,
    "x11_magic_cookie": _INTERACTIVE,
    "x11_target_host": _INTERACTIVE,
    "x11_target_port": _INTERACTIVE,
}
"""Why each key that is not taken is not."""


def wishes(given: Mapping[str, Any]) -> Iterator[Wish]:
    """Give what parameters ask for.

    Raises
    ------
    InvalidJob
        For a key that is unknown or not taken, and for a value that is wrong.
    """
    done: set[int] = set()
    for key in given:
        field = f"spec.parameters.{key[:60]}"
        parameter = PARAMETERS.get(key)
        if parameter is None:
            reason = REFUSED.get(key, "slurmrestd has no such field for the submission of a job")
            raise InvalidJob(field, reason)
        if id(parameter) in done:
            continue
        done.add(id(parameter))
        try:
            yield Wish(field, parameter.written(given), parameter.options)
        except ValueError as error:
            raise InvalidJob(field, str(error)) from None
