"""Releases of Slurm that integration tests run with."""

from __future__ import annotations

from typing import Any, Final

import pytest

OLDER_IN_FULL: Final[list[Any]] = [pytest.param("24.11", marks=pytest.mark.full), "26.05"]
"""The newest in each run, the older one in `make test-full`: for tests that take a minute with each."""
