"""Entry of ``python -m hack.localkube``."""

import sys

from hack.localkube.cli import main
from hack.machine import neutral_start

neutral_start.begin()
sys.exit(main())
