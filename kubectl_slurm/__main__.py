"""Entry of ``python -m kubectl_slurm``."""

import sys

from kubectl_slurm.cli import main

sys.exit(main())
