"""``python -m slinky_operator.joblogs serve|follow|copy …``, as pods start it: `slinky_operator.pod_programs.joblogs`.

The name stays where it is, whatever moves behind it: pods are replaced when their command lines change.
"""

import sys

from slinky_operator.pod_programs.joblogs.command import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
