"""``python -m slurm_client`` is ``slurm-rest``: see :mod:`slurm_client.cli`."""

from __future__ import annotations

import sys

from slurm_client.cli import main

if __name__ == "__main__":
    sys.exit(main())
