"""What all tests share: random cases are judged by what they find, never by how long they take."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("slurm-operator", deadline=None)
settings.load_profile("slurm-operator")
