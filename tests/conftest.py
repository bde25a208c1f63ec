"""Settings of all tests: they start in the same state from any shell, and random cases have no time limit."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

from hack import neutral_start

neutral_start.begin()
settings.register_profile("slurm-operator", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("slurm-operator")
