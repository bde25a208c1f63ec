"""Settings of all tests: they start in the same state from any shell, and random cases have no time limit.

What a process collects are a million objects that stay until its end. The garbage collector would look at all of them
again and again, which took a sixth of the time of unit tests.
"""

from __future__ import annotations

import gc
from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, settings

from hack.machine import neutral_start

YOUNG = 10_000
"""New containers between two collections; Python's default is 700."""

neutral_start.begin()
settings.register_profile("slurm-operator", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("slurm-operator")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    gc.set_threshold(YOUNG)
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()
