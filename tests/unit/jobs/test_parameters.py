"""What is asked for by a name of slurmrestd is sent under that name; what is not known to do no harm is refused."""

from __future__ import annotations

from typing import Any

import pytest

from slinky_api.v1alpha1.slurmjob.submission import SlurmJobSpec
from slinky_operator.jobs.parameters import PARAMETERS, REFUSED
from slinky_operator.jobs.refusal import InvalidJob
from slinky_operator.jobs.translation import translate
from slurm_client import wire
from slurm_client.encode import jobs as encode
from slurm_client.notation.sbatch.table import OPTIONS


def sent(**parameters: Any) -> dict[str, Any]:
    """What goes to slurmrestd for a job with these parameters."""
    spec = SlurmJobSpec(command=("true",), parameters=parameters)
    return dict(encode.submission(translate(spec, name="sample").job)["job"])


def refusal(**parameters: Any) -> str:
    with pytest.raises(InvalidJob) as refused:
        sent(**parameters)
    return str(refused.value)


def marked(number: int) -> dict[str, Any]:
    return {"set": True, "infinite": False, "number": number}


SAMPLES: dict[str, Any] = {
    "account_gather_frequency": "task=15",
    "batch_features": "fast",
    "begin_time": marked(1_999_999_999),
    "burst_buffer": "capacity=1",
    "cluster_constraint": "big",
    "comment": "a 'b' \"c\" #d \\",
    "container": "/bundle",
    "container_id": "mine",
    "container_type": "oci",
    "contiguous": True,
    "core_specification": 1,
    "cores_per_socket": 2,
    "cpu_frequency": "high",
    "cpus_per_tres": "gres/gpu:2",
    "deadline": 1_999_999_999,
    "delay_boot": 90,
    "dependency": "afterok:5,singleton",
    "distribution": "cyclic:block",
    "excluded_nodes": ["w-1", "w-2"],
    "flags": ["GRES_BINDING_ENFORCED", "SPREAD_JOB"],
    "hold": True,
    "kill_on_node_fail": False,
    "kill_warning_signal": "USR1",
    "licenses": "matlab:2",
    "mail_type": ["END", "TIME=80%", "INVALID_DEPENDENCY"],
    "mail_user": "me@example.org",
    "mcs_label": "secret",
    "memory_binding_type": ["VERBOSE", "LOCAL"],
    "memory_per_cpu": marked(100),
    "memory_per_tres": "gres/gpu:1024",
    "memory_update_margin": 10,
    "minimum_cpus_per_node": 4,
    "name": "mine",
    "network": "ib",
    "nice": -5,
    "oom_kill_step": 1,
    "open_mode": ["APPEND"],
    "overcommit": True,
    "prefer": "fast",
    "priority": marked(7),
    "profile": ["TASK", "ENERGY"],
    "reboot": True,
    "required_nodes": ["w-1", "w-2"],
    "required_switches": marked(2),
    "reservation": "tonight",
    "segment_size": marked(2),
    "selinux_context": "unconfined",
    "shared": ["user"],
    "sockets_per_node": 2,
    "standard_input": "in.txt",
    "tasks_per_core": 1,
    "tasks_per_node": 2,
    "tasks_per_socket": 2,
    "temporary_disk_per_node": 100,
    "thread_specification": 1,
    "threads_per_core": 2,
    "time_minimum": marked(10),
    "tres_bind": "gres/gpu:closest",
    "tres_freq": "gpu:high",
    "tres_per_job": "gres/gpu:2,gres/gpu:a100:1",
    "tres_per_socket": "gres/gpu:1",
    "tres_per_task": "cpu=2,gres/gpu:1",
    "wait_all_nodes": True,
    "wckey": "project",
}
TOGETHER: dict[str, dict[str, Any]] = {
    "kill_warning_delay": {"kill_warning_signal": "USR1", "kill_warning_delay": marked(90)},
    "kill_warning_flags": {"kill_warning_signal": "TERM", "kill_warning_flags": ["BATCH_JOB"]},
    "memory_binding": {"memory_binding_type": ["MAP"], "memory_binding": "0,1"},
    "memory_update_delay": {"memory_update_margin": 10, "memory_update_delay": 5},
    "memory_update_margin": {"memory_update_margin": 10, "memory_update_delay": 5},
    "ntasks_per_tres": {"tres_per_job": "gres/gpu:2", "ntasks_per_tres": 2},
    "wait_for_switch": {"required_switches": marked(1), "wait_for_switch": 90},
}


def test_every_key_of_every_data_parser_is_taken_or_refused_with_a_reason() -> None:
    known = {key for parser in wire.PARSERS for key in wire.fields(parser, "JobDescMsg")}
    assert PARAMETERS.keys() | REFUSED.keys() == known
    assert PARAMETERS.keys() & REFUSED.keys() == set()
    assert all(len(reason) > 10 for reason in REFUSED.values())


@pytest.mark.parametrize("key", sorted(PARAMETERS))
def test_a_parameter_is_sent_under_its_name(key: str) -> None:
    given = TOGETHER.get(key, {key: SAMPLES.get(key)})
    body = sent(**given)
    if "flags" in given:
        # A job has flags of its own beside those that are asked for.
        assert set(body["flags"]) >= set(given["flags"])
    else:
        assert {name: body[name] for name in given} == given


@pytest.mark.parametrize("key", sorted(PARAMETERS))
def test_options_of_parameters_are_options_of_sbatch(key: str) -> None:
    assert {option.removeprefix("--") for option in PARAMETERS[key].options} <= set(OPTIONS)
    given = TOGETHER.get(key, {key: SAMPLES.get(key)})
    assert {option for option, _ in PARAMETERS[key].written(given)} <= PARAMETERS[key].options


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"priority": 7}, {"priority": marked(7)}),
        ({"memory_per_cpu": 100}, {"memory_per_cpu": marked(100)}),
        ({"begin_time": 1_999_999_999}, {"begin_time": marked(1_999_999_999)}),
        (
            {"time_minimum": {"set": True, "infinite": True}},
            {"time_minimum": {"set": True, "infinite": True, "number": 0}},
        ),
        ({"mail_type": "END"}, {"mail_type": ["END"]}),
        ({"required_nodes": "w-[1-2]"}, {"required_nodes": ["w-1", "w-2"]}),
        ({"kill_on_node_fail": True}, {}),
        ({"contiguous": False}, {}),
        ({"shared": ["none"]}, {"shared": ["none"]}),
        ({"shared": "oversubscribe"}, {"shared": ["oversubscribe"]}),
        ({"wait_all_nodes": False}, {"wait_all_nodes": False}),
        ({"tres_per_job": "gres/gpu=2"}, {"tres_per_job": "gres/gpu:2"}),
        ({"flags": ["NO_KILL_INVALID_DEPENDENCY"]}, {"flags": ["NO_KILL_INVALID_DEPENDENCY"]}),
    ],
)  # fmt: skip
def test_values_may_be_written_in_short(given: dict[str, Any], wanted: dict[str, Any]) -> None:
    body = sent(**given)
    assert {name: body.get(name) for name in given} == {name: wanted.get(name) for name in given}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"bogus": 1}, "spec.parameters.bogus: slurmrestd has no such field for the submission of a job"),
        ({"memory_per_node": 1}, "spec.parameters.memory_per_node: write spec.memory"),
        ({"user_id": "0"}, "spec.parameters.user_id: a job belongs to the user"),
        ({"extra": "x"}, "spec.parameters.extra: the operator marks there"),
        ({"nice": "5"}, "spec.parameters.nice: must be a whole number"),
        ({"nice": True}, "spec.parameters.nice: must be a whole number"),
        ({"nice": 10**30}, "spec.parameters.nice: must be a whole number"),
        ({"tasks_per_node": -1}, "spec.parameters.tasks_per_node: must not be negative"),
        ({"tasks_per_node": 0}, "spec.parameters.tasks_per_node: 0 is not between"),
        ({"priority": {"set": False}}, "spec.parameters.priority: is a number that is not set"),
        ({"priority": {"infinite": True, "set": True}}, "spec.parameters.priority: has no limit"),
        ({"priority": {"value": 5}}, "spec.parameters.priority: must be a whole number, or one with set"),
        ({"comment": 5}, "spec.parameters.comment: must be a text"),
        ({"comment": ""}, "spec.parameters.comment: must be a text"),
        ({"comment": "a\nb"}, "spec.parameters.comment: must be one line"),
        ({"comment": "x" * 5000}, "spec.parameters.comment: has more than 4096 characters"),
        ({"hold": "yes"}, "spec.parameters.hold: must be true or false"),
        ({"mail_type": ["END", "OOPS"]}, "spec.parameters.mail_type: 'OOPS' is none of"),
        ({"mail_type": []}, "spec.parameters.mail_type: must be a list of"),
        ({"mail_type": 5}, "spec.parameters.mail_type: must be a list of"),
        ({"flags": ["CRON_JOB"]}, "spec.parameters.flags: 'CRON_JOB' is none of"),
        (
            {"flags": ["GRES_BINDING_ENFORCED"], "oom_kill_step": 5},
            "spec.parameters.oom_kill_step: 5 is not between 0 and 1",
        ),
        ({"open_mode": ["APPEND", "TRUNCATE"]}, "spec.parameters.open_mode: must be one of"),
        ({"shared": ["user", "oversubscribe"]}, "spec.parameters.shared: excludes"),
        ({"required_nodes": ["a", 5]}, "spec.parameters.required_nodes: must be a list of names of nodes"),
        ({"required_nodes": ["a" * 70_000]}, "spec.parameters.required_nodes: has more than 65536 characters"),
        ({"required_nodes": ["a\n"]}, "spec.parameters.required_nodes: must be names of nodes"),
        ({"excluded_nodes": "./file"}, "spec.parameters.excluded_nodes: './file' is a file of names"),
        ({"tres_per_job": "gres/shard:1"}, "spec.parameters.tres_per_job: must begin with gres/gpu:"),
        ({"cpus_per_tres": "gres/gpu:x"}, "spec.parameters.cpus_per_tres: must be such as gres/gpu:4"),
        ({"deadline": 5}, "spec.parameters.deadline: must be a time in seconds since 1970"),
        ({"kill_warning_delay": 5}, "spec.parameters.kill_warning_delay: means nothing without kill_warning_signal"),
        ({"memory_update_margin": 5}, "spec.parameters.memory_update_margin: means nothing without memory_update_"),
        ({"memory_binding_type": ["MAP"]}, "spec.parameters.memory_binding_type: must be MAP or MASK where"),
        ({"memory_binding": "0"}, "spec.parameters.memory_binding: means nothing without memory_binding_type"),
        ({"kill_warning_signal": "NOSUCH"}, "spec.parameters.kill_warning_signal: 'NOSUCH' is no signal"),
    ],
)  # fmt: skip
def test_what_cannot_be_sent_is_refused_by_name(given: dict[str, Any], said: str) -> None:
    assert refusal(**given).startswith(said)
