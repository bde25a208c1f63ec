"""The parts of a Cluster, a folder each: what it makes, what it asks the world, what it shows.

Each says in its `__init__` what it is about. `daemons` is the list of daemons, and queries over all of them.

In a part, `part` has what it answers for (`cluster.part`) and its steps of a plan, if these are many in `step`,
`condition` the rules of its condition where these are many, `question` what it asks, `writes` how it writes what needs
more than an ordinary write, and `manifests` its objects. What a step finds out is a frozen type of its part, noted in
the state of the pass (`pass_state`). A part may import manifests, questions, findings and plain rules of others, never
their steps.
"""
