"""
Slurm's error numbers: their names, and which class of error each one is.

The numbers are part of Slurm's protocol and do not change their meaning between releases; new ones are added. What
slurmrestd puts around them (HTTP status, sentences) is not looked at here.
"""

from __future__ import annotations

import functools
from types import MappingProxyType
from typing import TYPE_CHECKING

from slurm_client import errors

if TYPE_CHECKING:
    from collections.abc import Mapping

# Runs of consecutive numbers: first number, names without the prefix, prefix.
_RUNS: tuple[tuple[int, str, str], ...] = (
    (
        1000,
        "SLURM_",
        (
            "UNEXPECTED_MSG_ERROR COMMUNICATIONS_CONNECTION_ERROR COMMUNICATIONS_SEND_ERROR "
            "COMMUNICATIONS_RECEIVE_ERROR "
            "COMMUNICATIONS_SHUTDOWN_ERROR PROTOCOL_VERSION_ERROR PROTOCOL_IO_STREAM_VERSION_ERROR "
            "PROTOCOL_AUTHENTICATION_ERROR PROTOCOL_INSANE_MSG_LENGTH"
        ),
    ),
    (
        1800,
        "SLURMCTLD_COMMUNICATIONS_",
        "CONNECTION_ERROR SEND_ERROR RECEIVE_ERROR SHUTDOWN_ERROR BACKOFF HARD_DROP",
    ),
    (1900, "SLURM_", "NO_CHANGE_IN_DATA"),
    (
        2000,
        "ESLURM_",
        (
            "INVALID_PARTITION_NAME DEFAULT_PARTITION_NOT_SET ACCESS_DENIED JOB_MISSING_REQUIRED_PARTITION_GROUP "
            "REQUESTED_NODES_NOT_IN_PARTITION TOO_MANY_REQUESTED_CPUS INVALID_NODE_COUNT MAX_JOB_COUNT "
            "JOB_MISSING_SIZE_SPECIFICATION JOB_SCRIPT_MISSING USER_ID_MISSING DUPLICATE_JOB_ID PATHNAME_TOO_LONG "
            "NOT_TOP_PRIORITY REQUESTED_NODE_CONFIG_UNAVAILABLE REQUESTED_PART_CONFIG_UNAVAILABLE NODES_BUSY "
            "INVALID_JOB_ID INVALID_NODE_NAME WRITING_TO_FILE TRANSITION_STATE_NO_UPDATE ALREADY_DONE "
            "INTERCONNECT_FAILURE BAD_DIST JOB_PENDING BAD_TASK_COUNT INVALID_JOB_CREDENTIAL IN_STANDBY_MODE "
            "INVALID_NODE_STATE INVALID_FEATURE INVALID_AUTHTYPE_CHANGE ACTIVE_FEATURE_NOT_SUBSET "
            "INVALID_SCHEDTYPE_CHANGE INVALID_SELECTTYPE_CHANGE INVALID_SWITCHTYPE_CHANGE FRAGMENTATION NOT_SUPPORTED "
            "DISABLED DEPENDENCY BATCH_ONLY LICENSES_UNAVAILABLE TAKEOVER_NO_HEARTBEAT JOB_HELD "
            "INVALID_CRED_TYPE_CHANGE INVALID_TASK_MEMORY INVALID_ACCOUNT INVALID_PARENT_ACCOUNT SAME_PARENT_ACCOUNT "
            "INVALID_LICENSES NEED_RESTART ACCOUNTING_POLICY INVALID_TIME_LIMIT RESERVATION_ACCESS RESERVATION_INVALID "
            "INVALID_TIME_VALUE RESERVATION_BUSY RESERVATION_NOT_USABLE INVALID_WCKEY RESERVATION_OVERLAP PORTS_BUSY "
            "PORTS_INVALID PROLOG_RUNNING NO_STEPS MISSING_WORK_DIR STEPS_DRAINED"
        ),
    ),
    (
        2066,
        "ESLURM_",
        (
            "INVALID_QOS QOS_PREEMPTION_LOOP NODE_NOT_AVAIL INVALID_CPU_COUNT PARTITION_NOT_AVAIL CIRCULAR_DEPENDENCY "
            "INVALID_GRES JOB_NOT_PENDING QOS_THRES PARTITION_IN_USE STEP_LIMIT JOB_SUSPENDED CAN_NOT_START_IMMEDIATELY"
        ),
    ),
    (
        2080,
        "ESLURM_",
        (
            "RESERVATION_EMPTY INVALID_ARRAY RESERVATION_NAME_DUP JOB_STARTED JOB_FINISHED JOB_NOT_RUNNING "
            "JOB_NOT_PENDING_NOR_RUNNING JOB_NOT_SUSPENDED JOB_NOT_FINISHED TRIGGER_DUP INTERNAL"
        ),
    ),
    (2100, "ESLURM_", "BURST_BUFFER_WAIT PARTITION_DOWN DUPLICATE_GRES"),
    (2104, "ESLURM_", "RSV_ALREADY_STARTED SUBMISSIONS_DISABLED NOT_HET_JOB NOT_HET_JOB_LEADER NOT_WHOLE_HET_JOB"),
    (
        2162,
        "ESLURM_",
        (
            "EMPTY_LIST GROUP_ID_INVALID GROUP_ID_UNKNOWN USER_ID_INVALID USER_ID_UNKNOWN INVALID_ASSOC "
            "NODE_ALREADY_EXISTS NODE_TABLE_FULL INVALID_RELATIVE_QOS INVALID_EXTRA JOB_SIGNAL_FAILED"
        ),
    ),
    (2180, "ESLURM_", "INVALID_NODE_STATE_TRANSITION INVALID_JOB_STATE"),
    (6000, "ESLURM_", "AUTH_CRED_INVALID AUTH_EXPIRED"),
    (
        7000,
        "ESLURM_",
        (
            "DB_CONNECTION JOBS_RUNNING_ON_ASSOC CLUSTER_DELETED ONE_CHANGE BAD_NAME OVER_ALLOCATE RESULT_TOO_LARGE "
            "DB_QUERY_TOO_WIDE"
        ),
    ),
    (
        9000,
        "ESLURM_REST_",
        (
            "INVALID_QUERY FAIL_PARSING INVALID_JOBS_DESC EMPTY_RESULT MISSING_UID MISSING_GID UNKNOWN_URL "
            "UNKNOWN_URL_METHOD AUTH_FAIL BAD_REQUEST"
        ),
    ),
    (
        9200,
        "ESLURM_DATA_",
        (
            "PATH_NOT_FOUND PTR_NULL CONV_FAILED REGEX_COMPILE UNKNOWN_MIME_TYPE TOO_LARGE FLAGS_INVALID_TYPE "
            "FLAGS_INVALID EXPECTED_LIST EXPECTED_DICT AMBIGUOUS_MODIFY AMBIGUOUS_QUERY PARSE_NOTHING INVALID_PARSER"
        ),
    ),
)

# Of errno.h: the connection of slurmrestd to slurmctld was refused or broke.
_BROKEN_SOCKET = frozenset({32, 100, 101, 103, 104, 107, 110, 111, 112, 113})

_CLASSES: tuple[tuple[type[errors.SlurmError], tuple[int, ...]], ...] = (
    (errors.ControllerDown, (1001, 1002, 1003, 1004, 1800, 1801, 1802, 1803, 1804, 1805, 2027)),
    (errors.DatabaseDown, (7000,)),
    (errors.Unauthorized, (1007, 6000, 6001, 9008)),
    (errors.PermissionDenied, (2002, 2010, 2052)),
    (errors.NotFound, (2000, 2017, 2018, 2053, 9003)),
    (errors.InvalidTransition, (2020, 2028, 2073, 2077, 2083, 2084, 2085, 2086, 2087, 2088, 2180, 2181)),
    (
        errors.Conflict,
        (2011, 2013, 2016, 2021, 2024, 2055, 2058, 2059, 2061, 2075, 2078, 2082, 2168, 7001),
    ),
    (errors.NotSupported, (2036, 2037)),
)


def name_of(number: int | None) -> str:
    """Return Slurm's symbol for an error number; empty if it is not known here."""
    return _names().get(number, "") if number is not None else ""


_SILENT = (1, "slurm_kill_jobs()")
"""
What slurmrestd says if slurmctld does not answer while jobs are ended (24.11 to 26.05): "Operation not permitted".

``src/api/cancel.c`` takes the truth of a comparison for the number of the error. A refusal has number 2010.
"""


def is_silence(number: int | None, source: str) -> bool:
    """Whether slurmrestd says of jobs that were to be ended that slurmctld did not answer."""
    return (number, source) == _SILENT


def class_of(number: int | None, source: str = "") -> type[errors.SlurmError] | None:
    """Return the class of errors a number belongs to; ``None`` when number and source are not enough."""
    if not number:
        return None
    if is_silence(number, source):
        return errors.ControllerDown
    found = _classes().get(number)
    if found is not None:
        return found
    if number in _BROKEN_SOCKET:
        return errors.ControllerDown
    if 2000 <= number < 3000 or number in {7004, 7005, 7006, 7007} or 9000 <= number < 10_000:
        return errors.InvalidRequest
    return None


@functools.cache
def _names() -> Mapping[int, str]:
    return MappingProxyType(
        {first + offset: prefix + word for first, prefix, run in _RUNS for offset, word in enumerate(run.split())}
    )


@functools.cache
def _classes() -> Mapping[int, type[errors.SlurmError]]:
    return MappingProxyType({number: kind for kind, numbers in _CLASSES for number in numbers})
