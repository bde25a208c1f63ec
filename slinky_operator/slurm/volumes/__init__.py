"""How much room volumes of Slurm's pods have: what a pod answers, and from when on that is little.

`room`   the rules and the words: how much is little, full, or enough again
`query`  one question to the program beside a daemon that looks at its volumes

What a full volume means, and whom to tell, is left to the controllers. The programs that look are
`slinky_operator.pod_programs.agent` beside slurmctld and MariaDB, and `pod_programs.joblogs` beside slurmd.
"""
