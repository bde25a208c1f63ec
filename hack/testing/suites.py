"""The test suites: which calls of pytest they consist of, and which of these run side by side.

Leaves running them to `hack.check`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

IN_TWO = ("--numprocesses=2",)
IN_THREE = ("--numprocesses=3",)
"""Three processes, each with what it starts for itself, a control plane for instance: as many as a short run pays.

Unit tests wait for programs and for loops of the operator: two processes left an eighth of two processors idle."""

IN_SIX = ("--numprocesses=6",)
"""Six processes for two processors: they wait for daemons nine tenths of the time."""

FULL_HISTORIES = {"NODESET_HISTORIES": "20000", "KEY_EVENTS": "4"}
FEW_HISTORIES = {"NODESET_HISTORIES": "200"}

NOT_FULL = ("-m", "not full")
"""What takes minutes, and whose rules other tests decide too, is left to ``make test-full``."""

SOME_THOROUGH = ("--one-in=8",)
"""Of the cases of a test marked thorough, such as mutants and hostile texts for each field."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call of pytest.

    Attributes
    ----------
    report
        Name of its report.
    arguments
        For pytest.
    environment
        Variables beside those of this process.
    has_second_time
        Whether files with a few failed tests are run again. The first argument is the folder of them then.
    """

    report: str
    arguments: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    has_second_time: bool = False

    def again(self, files: Sequence[str]) -> Call:
        """Return the call that runs some files of this one again, as tests of a file may need those before them."""
        return Call(f"{self.report}-again", (*files, *self.arguments[1:]), self.environment)


@dataclass(frozen=True, slots=True)
class Suite:
    """A test suite.

    Attributes
    ----------
    needs
        The suite of `hack.testing.preparing` that says what has to be built.
    steps
        Calls of pytest; those of one step run side by side.
    """

    needs: str
    steps: tuple[tuple[Call, ...], ...]


def twice(report: str, *arguments: str) -> Call:
    """Return a call whose files with a few failed tests are run again."""
    return Call(report, arguments, has_second_time=True)


def end_to_end(*options: str, less: str = "") -> Suite:
    """Return the suite of end-to-end tests, in as many local clusters as can be kept busy.

    Parameters
    ----------
    options
        For pytest.
    less
        What is left out, as the end of an expression of marks.
    """
    return Suite(
        "e2e",
        (
            # What looks for traces on the whole machine must be alone on it.
            (Call("e2e-ground", ("tests/e2e/ground", "-m", "not alone")),),
            # All of one call share a cluster; those of the others disturb theirs, and so have it to themselves.
            (
                twice("e2e", "tests/e2e/operator", "-m", f"not alone{less}", "--numprocesses=4", *options),
                twice("e2e-alone", "tests/e2e", "-m", f"alone{less}", "--apart", "--numprocesses=2", *options),
                twice("e2e-campaign", "tests/e2e/campaign"),
            ),
        ),
    )


SUITES: dict[str, Suite] = {
    "unit-quick": Suite(
        "unit",
        ((Call("unit-quick", ("tests/unit", "-m", "not thorough", *IN_TWO, "--dist=worksteal"), FEW_HISTORIES),),),
    ),
    "unit": Suite("unit", ((twice("unit", "tests/unit", *IN_THREE, "--dist=worksteal", *SOME_THOROUGH),),)),
    "unit-full": Suite("unit", ((Call("unit", ("tests/unit", *IN_THREE, "--dist=worksteal"), FULL_HISTORIES),),)),
    "smoke": Suite("integration", ((Call("smoke", ("tests/integration", "-m", "smoke", *IN_THREE)),),)),
    "integration": Suite("integration", ((twice("integration", "tests/integration", *NOT_FULL, *IN_SIX),),)),
    "integration-full": Suite("integration", ((twice("integration", "tests/integration", *IN_SIX),),)),
    "e2e": end_to_end(less=" and not full"),
    "e2e-full": end_to_end("--slurm=all"),
}
