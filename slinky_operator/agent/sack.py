"""``python -m slinky_operator.agent.sack SOCKET PORT``."""

from slinky_operator.pod_programs.agent.sack import main

if __name__ == "__main__":
    main()
