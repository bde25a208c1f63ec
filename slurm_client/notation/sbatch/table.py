"""
All options of sbatch, of 24.11 and 26.05, and what becomes of each: a field of JobSpec, or why there is none.

Names and letters are those of ``src/common/slurm_opt.c``. Tests compare the list with ``sbatch --help``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from slurm_client.notation.sbatch import effects, environment, values, words
from slurm_client.notation.sbatch.effects import constant, flagged, idle, path, plain, raw, refused

if TYPE_CHECKING:
    from slurm_client.notation.sbatch.effects import Effect
    from slurm_client.notation.sbatch.options import Takes


@dataclass(frozen=True, slots=True)
class Option:
    """
    One option.

    Parameters
    ----------
    effect
        What it does.
    takes
        Whether it takes a value.
    letter
        Its short form.
    """

    effect: Effect
    takes: Takes = "value"
    letter: str = ""


_COMMAND = "is about the command sbatch, which does not run here"
_TOKEN = "is for root alone; a job belongs to the user of the token it is submitted with (see SlurmClient.as_user)"  # noqa: S105 - no secret
_FILE = "names a file of the machine where sbatch runs"
_CLUSTER = "a client speaks to one cluster: submit the job with a client of that cluster"


def _count(name: str) -> Effect:
    return plain(name, values.integer)


OPTIONS: dict[str, Option] = {
    "account": Option(plain("account"), letter="A"),
    "acctg-freq": Option(plain("account_gather_frequency", words.frequencies)),
    "array": Option(plain("array"), letter="a"),
    "autocomplete": Option(refused(_COMMAND)),
    "batch": Option(plain("batch_features")),
    "bb": Option(plain("burst_buffer")),
    "bbf": Option(refused(f"{_FILE}: write its lines as #BB lines of the script, or as --bb")),
    "begin": Option(effects.when("begin_time"), letter="b"),
    "chdir": Option(effects.chdir, letter="D"),
    "cluster": Option(refused(_CLUSTER)),
    "cluster-constraint": Option(plain("cluster_constraint")),
    "clusters": Option(refused(_CLUSTER), letter="M"),
    "comment": Option(plain("comment")),
    "consolidate-segments": Option(flagged("CONSOLIDATE_SEGMENTS"), "none"),
    "constraint": Option(plain("constraints"), letter="C"),
    "container": Option(plain("container")),
    "container-id": Option(plain("container_id")),
    "container-type": Option(plain("container_type")),
    "context": Option(plain("selinux_context")),
    "contiguous": Option(constant("contiguous", value=True), "none"),
    "core-spec": Option(plain("core_specification", lambda text: values.integer(text, least=0)), letter="S"),
    "cores-per-socket": Option(_count("cores_per_socket")),
    "cpu-freq": Option(plain("cpu_frequency")),
    "cpus-per-gpu": Option(raw(values.integer)),
    "cpus-per-task": Option(_count("cpus_per_task"), letter="c"),
    "deadline": Option(effects.when("deadline")),
    "delay-boot": Option(plain("delay_boot", values.finite)),
    "dependency": Option(plain("dependency"), letter="d"),
    "distribution": Option(plain("distribution", words.distribution), letter="m"),
    "error": Option(plain("standard_error", path), letter="e"),
    "exclude": Option(effects.node_names, letter="x"),
    "exclusive": Option(words.exclusive, "maybe"),
    "export": Option(environment.exported),
    "export-file": Option(refused(f"{_FILE}: write --export=NAME=value")),
    "external": Option(refused("a job without a script cannot be submitted with one"), "none"),
    "extra": Option(plain("extra")),
    "extra-node-info": Option(effects.node_info, letter="B"),
    "get-user-env": Option(environment.user_environment, "none"),
    "gid": Option(refused(_TOKEN)),
    "gpu-bind": Option(plain("tres_bind", lambda text: f"gres/gpu:{text}")),
    "gpu-freq": Option(plain("tres_freq", lambda text: f"gpu:{text}")),
    "gpus": Option(raw(), letter="G"),
    "gpus-per-node": Option(raw()),
    "gpus-per-socket": Option(raw()),
    "gpus-per-task": Option(raw()),
    "gres": Option(raw()),
    "gres-flags": Option(words.gres_flags),
    "help": Option(refused(_COMMAND), "none", "h"),
    "hint": Option(environment.hint),
    "hold": Option(constant("hold", value=True), "none", "H"),
    "ignore-pbs": Option(idle("#PBS and #BSUB lines are not read in any case"), "none"),
    "input": Option(plain("standard_input", path), letter="i"),
    "job-name": Option(plain("name"), letter="J"),
    "kill-on-invalid-dep": Option(words.invalid_dependency),
    "licenses": Option(plain("licenses"), letter="L"),
    "mail-type": Option(words.mail_type),
    "mail-user": Option(plain("mail_user")),
    "mcs-label": Option(plain("mcs_label")),
    "mem": Option(plain("memory_per_node_mib", values.mebibytes)),
    "mem-bind": Option(environment.memory_binding),
    "mem-per-cpu": Option(plain("memory_per_cpu_mib", values.mebibytes)),
    "mem-per-gpu": Option(raw(values.mebibytes)),
    "mem-update": Option(effects.memory_update),
    "mincpus": Option(_count("minimum_cpus_per_node")),
    "network": Option(plain("network")),
    "nice": Option(effects.nice, "maybe"),
    "no-kill": Option(words.no_kill, "maybe", "k"),
    "no-requeue": Option(constant("requeue", value=False), "none"),
    "nodefile": Option(refused(f"{_FILE}: write --nodelist"), letter="F"),
    "nodelist": Option(effects.node_names, letter="w"),
    "nodes": Option(raw(values.nodes), letter="N"),
    "ntasks": Option(_count("tasks"), letter="n"),
    "ntasks-per-core": Option(_count("tasks_per_core")),
    "ntasks-per-gpu": Option(raw(values.integer)),
    "ntasks-per-node": Option(_count("tasks_per_node")),
    "ntasks-per-socket": Option(_count("tasks_per_socket")),
    "ntasks-per-tres": Option(raw(values.integer)),
    "oom-kill-step": Option(effects.oom_kill_step, "maybe"),
    "open-mode": Option(words.open_mode),
    "output": Option(plain("standard_output", path), letter="o"),
    "overcommit": Option(constant("overcommit", value=True), "none", "O"),
    "oversubscribe": Option(constant("shared", value="oversubscribe"), "none", "s"),
    "parsable": Option(idle(_COMMAND), "none"),
    "partition": Option(plain("partition"), letter="p"),
    "prefer": Option(plain("prefer")),
    "priority": Option(effects.priority),
    "profile": Option(words.profile),
    "propagate": Option(environment.propagate, "maybe"),
    "qos": Option(plain("qos"), letter="q"),
    "quiet": Option(idle(_COMMAND), "none", "Q"),
    "reboot": Option(constant("reboot", value=True), "none"),
    "requeue": Option(effects.requeue, "maybe"),
    "reservation": Option(plain("reservation")),
    "resources": Option(raw()),
    "resv-ports": Option(
        refused("slurmrestd has no word for ports of MPI (its reserve_ports is another thing)"), "maybe"
    ),
    "segment": Option(plain("segment_size", lambda text: values.integer(text, least=0, most=2**16 - 3))),
    "signal": Option(words.signal),
    "sockets-per-node": Option(_count("sockets_per_node")),
    "spread-job": Option(flagged("SPREAD_JOB"), "none"),
    "spread-segments": Option(flagged("SPREAD_SEGMENTS"), "none"),
    "stepmgr": Option(flagged("STEPMGR_ENABLED"), "none"),
    "switches": Option(effects.switches),
    "tasks-per-node": Option(_count("tasks_per_node")),
    "test-only": Option(refused("submits nothing"), "none"),
    "thread-spec": Option(_count("thread_specification")),
    "threads-per-core": Option(_count("threads_per_core")),
    "time": Option(plain("time_limit", values.limit), letter="t"),
    "time-min": Option(plain("time_minimum", values.limit)),
    "tmp": Option(plain("temporary_disk_mib", values.mebibytes)),
    "tres-bind": Option(plain("tres_bind")),
    "tres-per-task": Option(raw()),
    "uid": Option(refused(_TOKEN)),
    "usage": Option(refused(_COMMAND), "none"),
    "use-min-nodes": Option(flagged("PREFER_MINIMUM_NODE_COUNT"), "none"),
    "verbose": Option(idle(_COMMAND), "none", "v"),
    "version": Option(refused(_COMMAND), "none", "V"),
    "wait": Option(idle("sbatch waits for the end of the job; wait_job does that here"), "none", "W"),
    "wait-all-nodes": Option(effects.wait_all_nodes),
    "wckey": Option(plain("wckey")),
    "wrap": Option(refused("makes a script of a command, and this is a script")),
}
"""By name, without dashes."""

SAME = {"tasks-per-node": "ntasks-per-node"}
"""Names that are others for the same option."""

LETTERS = {option.letter: name for name, option in OPTIONS.items() if option.letter}
"""Names by letter."""

TAKES: dict[str, Takes] = {name: option.takes for name, option in OPTIONS.items()}
"""Whether each takes a value."""
