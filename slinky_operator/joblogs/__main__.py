"""``python -m slinky_operator.joblogs serve|follow …``."""

import sys

from slinky_operator.joblogs.command import main

sys.exit(main(sys.argv[1:]))
