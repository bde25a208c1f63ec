"""What all tests share: random cases are judged by what they find, never by how long they take."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile("slurm-operator", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("slurm-operator")
