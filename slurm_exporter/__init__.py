"""An exporter for Prometheus: what Slurm knows of nodes, jobs, partitions and itself, in base units.

It asks slurmrestd at a pace of its own, however many scrapers there are, and keeps the page that they get. It needs
`slurm_client` only: no Kubernetes, and any slurmrestd from 24.05 on.

=============  ==================================================================
room           concern
=============  ==================================================================
`sources`      what is asked of Slurm, how often, and how old the answers are
`families`     what is measured: names, units, labels, and how values are counted
`samples`      how a family is declared, and what keeps its values bounded
`page`         text format and HTTP server
`counting`     from a snapshot to the samples of a page, in slices
`other_names`  names of other exporters, off by default
`exporter`     the exporter as one object: asks, counts, keeps the pages ready
`settings`     flags, of which most may come from the environment
`cli`          the program `slurm-exporter`
=============  ==================================================================
"""
