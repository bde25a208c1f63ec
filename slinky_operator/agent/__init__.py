"""The agent beside slurmctld: tells by HTTP which configuration files are mounted, and which names in them it can find.

Beside slurmctld and MariaDB it tells how much room their volumes have, too.

The kubelet refreshes a mounted ConfigMap when it sees fit, so that the operator cannot know from the API server alone
what slurmctld would read. This process sees the same volume and no key. It runs from the operator's image, and uses
nothing but a few modules of the standard library, so that it starts at once and stays small.
"""
