"""Entry of ``python -m hack.localkube``."""

import sys

from hack import neutral_start
from hack.localkube.cli import main

neutral_start.begin()
sys.exit(main())
