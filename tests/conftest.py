"""Settings of all tests: random cases have no time limit."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile("slurm-operator", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("slurm-operator")
