"""``python -m slinky_operator.agent FOLDER PORT [--volume=NAME=PATH]... [FILE]``."""

from slinky_operator.pod_programs.agent.server import main

main()
