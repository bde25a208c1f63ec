"""Entry of ``python -m slurm_exporter``."""

import sys

from slurm_exporter.cli import main

sys.exit(main())
