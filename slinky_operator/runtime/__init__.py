"""What every controller runs on: queue, loop, supervision, health, metrics, logging.

Knows neither Kubernetes kinds nor Slurm: keys are opaque and hashable, and errors say by two attributes what to do
next (`controller.Retry`).

====================  ================================================
module                concern
====================  ================================================
`queue`               which keys are due, one worker per key
`lanes`               in which order: namespaces take turns
`controller`          workers that reconcile keys and come again
`tasks`               background tasks whose crash ends the process
`health`              `/livez`, `/readyz`, `/healthz` and `/metrics`
`loop_lag`            how late the event loop runs
`one_a_turn`          work of which one piece is begun in a turn of the event loop
`threads`             a pool of threads for each purpose
`garbage_collection`  the garbage collector and big caches
`logging`             one line per record, with the object it is about
`printable`           texts of others without line breaks and escape sequences
====================  ================================================
"""
