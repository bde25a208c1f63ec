"""Entry of ``python -m hack.localkube``."""

import sys

from hack.localkube.cli import main

sys.exit(main())
