from __future__ import annotations

import pytest

from slurm_client import errors
from slurm_client.connection.circuit import Circuit

REQUEST = errors.Request("GET", "/")


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def opened(clock: Clock, **options: float) -> Circuit:
    circuit = Circuit(threshold=2, clock=clock, jitter=lambda: 1.0, **options)
    circuit.failed(errors.Unreachable("first"))
    circuit.check(REQUEST)
    circuit.failed(errors.Unreachable("second"))
    return circuit


def name_of(circuit: Circuit) -> str:
    return circuit.state.name


def test_it_opens_after_failures_in_a_row_and_says_why() -> None:
    clock = Clock()
    circuit = opened(clock)
    assert name_of(circuit) == "open"
    assert circuit.state.failures == 2
    assert circuit.state.since == 0.0
    assert str(circuit.state.error) == "second"
    with pytest.raises(errors.CircuitOpen, match="second") as refused:
        circuit.check(REQUEST)
    assert not refused.value.sent


def test_one_call_is_let_through_after_the_pause_and_decides() -> None:
    clock = Clock()
    circuit = opened(clock)
    clock.now = 1.1
    assert name_of(circuit) == "half-open"
    circuit.check(REQUEST)
    with pytest.raises(errors.CircuitOpen):
        circuit.check(REQUEST)
    circuit.succeeded()
    assert name_of(circuit) == "closed"
    circuit.check(REQUEST)


def test_each_failed_trial_doubles_the_pause_up_to_a_limit() -> None:
    clock = Clock()
    circuit = opened(clock, longest_pause=5.0)
    for pause in (1.0, 2.0, 4.0, 5.0, 5.0):
        clock.now += pause - 0.1
        with pytest.raises(errors.CircuitOpen):
            circuit.check(REQUEST)
        clock.now += 0.2
        circuit.check(REQUEST)
        circuit.failed(errors.Unreachable("again"))


def test_a_trial_that_never_ends_does_not_close_the_door_for_ever() -> None:
    clock = Clock()
    circuit = opened(clock, longest_pause=5.0)
    clock.now = 2.0
    circuit.check(REQUEST)
    clock.now = 7.1
    circuit.check(REQUEST)


def test_a_success_in_between_starts_the_count_anew() -> None:
    circuit = Circuit(threshold=2)
    circuit.failed(errors.Unreachable("first"))
    circuit.succeeded()
    circuit.failed(errors.Unreachable("second"))
    circuit.check(REQUEST)
