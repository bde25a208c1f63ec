"""Of what a daemon has logged, only the lines that are the fault are shown."""

from __future__ import annotations

import pytest

from slinky_operator.slurm.pods.exit_messages import MAX_LINES, short

NOT_THE_FAULT = (
    "error: Configured MailProg is invalid",
    "error: High latency for 1000 calls to gettimeofday(): 2318 microseconds",
    "error: Could not open node state file /preflight/state/node_state: No such file or directory",
    "error: NOTE: Trying backup state save file. Information may be lost!",
    "error: Job accounting information gathered, but not stored",
    "error: PriorityWeightFairshare can only be used with SlurmDBD, ignoring",
    "error: You can not have AccountingStorageEnforce set for AccountingStorageType='(null)'",
    "error: If using PrologFlags=Contain for pam_slurm_adopt, proctrack/cgroup is required. …, please ignore error.",
    "error: PreemptMode=GANG is a cluster-wide option and cannot be set at partition level, option ignored.",
    "error: Partition=bad CpuBind='x' is invalid, ignored",
    "error: NodeNames=metal1 Boards=0 is invalid, reset to 1",
    "error: MaxTime 1 specified more than once, latest value used",
    "error: _get_group_members: Could not find configured group nosuch",
    "error: We have no QOS on the system Ignoring invalid Allow/DenyQOS value(s) x",
    "error: power_save module disabled, NULL SuspendProgram",
    "warning: Even though we are collecting accounting information you have asked for it not to be stored",
    "No memory enforcing mechanism configured.",
    "debug:  an error in debug",
    "debug2: fatal things",
    "slurmctld version 26.05.5 started on cluster test(1715)",
)
"""What slurmctld of 24.11 or 26.05 logs and goes on, and what it logs beside each start."""


@pytest.mark.parametrize("line", NOT_THE_FAULT)
@pytest.mark.parametrize("form", ["{}", "slurmctld: {}", "[2026-11-24T16:11:08.886] {}"])
def test_a_line_that_is_not_the_fault_is_not_shown_beside_it(line: str, form: str) -> None:
    text = "\n".join(form.format(one) for one in (line, line, "fatal: Invalid Port x"))
    assert short(text) == "fatal: Invalid Port x"


def test_the_number_of_a_line_in_a_file_that_nobody_sees_is_not_shown() -> None:
    text = (
        "slurmctld: error: _parse_next_key: Parsing error at unrecognized key: Bogus\n"
        'slurmctld: error: Parse error in file /etc/slurm/slurm.conf line 29: " Bogus=1"\n'
        "slurmctld: fatal: Unable to process configuration file\n"
    )
    assert short(text) == (
        "error: _parse_next_key: Parsing error at unrecognized key: Bogus / fatal: Unable to process configuration file"
    )
    assert "gres.conf line 3" in short('error: Parse error in file /etc/slurm/gres.conf line 3: " Bogus=1"')


def test_lines_of_an_earlier_hour_are_not_shown() -> None:
    old = "[2026-11-24T11:00:00.000] error: slurm_receive_msg: Zero Bytes were transmitted or received"
    new = "[2026-11-24T16:11:08.886] error: Invalid partition topology\n[2026-11-24T16:11:08.900] fatal: it ends"
    assert short(f"{old}\n{new}") == "error: Invalid partition topology / fatal: it ends"
    mixed = "[2026-11-24T16:11:08+00:00] error: a\n[yesterday] error: b\n[2026-11-24T16:11:09] error: c"
    assert short(mixed) == "error: a / error: b / error: c"


def test_the_first_errors_and_the_last_word_stay_of_many() -> None:
    lines = ["error: missing function", *(f"error: cannot create {number}" for number in range(9)), "fatal: no plugin"]
    told = short("\n".join(one for line in lines for one in (f"slurmctld: {line}", line))).split(" / ")
    assert len(told) == MAX_LINES
    assert (told[0], told[-1]) == ("error: missing function", "fatal: no plugin")


def test_words_without_an_error_are_shown_as_they_are() -> None:
    assert short("one\ntwo\n") == "one / two"
    assert (
        short("2026-11-24 16:11:00 0 [ERROR] mariadbd: no error") == "2026-11-24 16:11:00 0 [ERROR] mariadbd: no error"
    )
    assert short("\n".join(NOT_THE_FAULT[:3])) == ""
