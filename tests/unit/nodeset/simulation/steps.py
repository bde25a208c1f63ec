"""The steps of which random histories consist, and how often each happens."""

from __future__ import annotations

Step = tuple[str, int]

# What happens often stands here several times.
STEPS: tuple[str, ...] = (
    *("pass",) * 14,
    *("see",) * 2,
    *("see_all",) * 6,
    "schedule",
    "start",
    "report",
    "register",
    *("stick",) * 2,
    *("come_up",) * 4,
    *("poll",) * 6,
    *("job_starts",) * 5,
    *("job_ends",) * 3,
    "job_suspends",
    "job_suspends",
    *("job_names",) * 2,
    "naming_ends",
    *("reconfigure",) * 2,
    *("kubelet_ends",) * 3,
    *("scale",) * 3,
    *("edit",) * 2,
    "misfit",
    "misregister",
    "reregister",
    *("hold_back",) * 2,
    "patience",
    "pad",
    "retain",
    "squat",
    "claims_go",
    "policy",
    "policy",
    "delete",
    "give_up",
    "finalizer_taken",
    *("collect",) * 2,
    "evict",
    "user_deletes_pod",
    "user_deletes_guard",
    "usurp",
    *("cordon",) * 2,
    *("cordon_host",) * 2,
    "annotate_host",
    "host_goes",
    *("host_comes",) * 2,
    *("pods_collected",) * 2,
    "neighbour_comes",
    *("neighbour_registers",) * 2,
    "neighbour_goes",
    "kubectl_drain",
    "kubectl_drain",
    "slurm_notices",
    "node_lost",
    "node_returns",
    "admin_drains",
    "admin_drains",
    "admin_undrains",
    "slurm_forgets",
    "slurmctld_restarts",
    *("slurmds_report",) * 2,
    "slurm_clock",
    "fault",
    *("heal",) * 3,
    "lose_slurm",
    "lose_kube",
    "fail_kube",
    "time",
    "time",
    "restart",
    "takeover",
)

TROUBLES = frozenset(
    {
        *(
            "fault",
            "lose_slurm",
            "slurm_forgets",
            "slurmctld_restarts",
            "lose_kube",
            "fail_kube",
            "restart",
            "takeover",
        ),
        *("restart", "takeover", "dies", "settings", "machines_work"),
        *("host_goes", "pods_collected", "finalizer_taken", "neighbour_comes"),
    }
)
"""After these, nobody can be sure to learn of every job on what is lost."""

STEPS_ON_HOSTS = (*STEPS, *("label_host",) * 2)
"""With one pod on each Node it matters which Nodes there are."""

STEPS_OF_HEALTH = (
    *("health",) * 4,
    *("replace",) * 5,
    *("boot",) * 2,
    *("drain_request",) * 2,
    *("sicken",) * 8,
    *("recover",) * 5,
    *("doubt",) * 2,
    "condition_goes",
    *("place",) * 2,
    *("rack",) * 3,
    *("window",) * 3,
    *("see_all",) * 2,
    *("time",) * 4,
)
"""What else happens where nodes are drained for the conditions of their Kubernetes Nodes, are placed by labels of
these, and updates wait for maintenance windows."""

STEPS_OF_MACHINES = (
    *("machine_policy",) * 8,
    *("machines_work",) * 6,
    *("enrol",) * 3,
    "settings",
    *("rights",) * 2,
    *("refuse",) * 2,
    *("dies",) * 2,
    *("tenant",) * 2,
    "unmark",
    "reboot_asked",
    *("see_all",) * 3,
    *("poll",) * 2,
    *("pass",) * 6,
    *("time",) * 2,
)
"""What happens besides where machines are rebooted and deleted."""

BAD_MACHINES: tuple[Step, ...] = (
    *(("health", 1), ("health", 3), ("sicken", 0), ("sicken", 1), ("sicken", 2), ("machines_work", 0), ("time", 3)),
    *(("machine_policy", 0), ("machine_policy", 1), ("machine_policy", 3), ("machine_policy", 4)),
    *(("see_all", 0), ("see_all", 0), ("pass", 0), ("pass", 0), ("pass", 1), ("poll", 0)),
)
"""What happens often where histories are about machines."""

STEPS_OF_CHECKS = (
    *("check",) * 3,
    *("break",) * 3,
    "comment_lost",
    *("checks_run",) * 8,
    *("see_all",) * 2,
    *("come_up",) * 2,
)
"""What happens besides where nodes run health checks."""
