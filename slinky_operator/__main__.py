"""Entry of ``python -m slinky_operator``."""

import sys

from slinky_operator.cli import main

sys.exit(main())
