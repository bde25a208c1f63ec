"""slurm.conf and its family: frozen inputs in, files and a hash out, or problems with field and reason.

Pure: no I/O, no time. What becomes of the files is the Cluster controller's business.

==============  ==================================================================================
module          concern
==============  ==================================================================================
`admit`         which NodeSets take part
`containers`    oci.conf: how nodes run containers
`directives`    reads user text as Slurm would: words `Key=Value`, and nothing that could be more
`future_nodes`  lines of nodes that a NodeSet may have some day
`key_rules`     what a change of each key of slurm.conf does to jobs
`inputs`        what a configuration is made of, taken from a Cluster and its NodeSets
`keys`          which keys need a restart
`merge`         the operator's keys and the user's `extraConf`, each key once
`nodes`         nodes outside Kubernetes, and whose names they may have
`parsed`        a rendered file parsed again, to know what runs
`render`        templates to files, and the hash over them
`sources`       the user's part: files and scripts from the spec and from the ConfigMaps it names
==============  ==================================================================================
"""

from slinky_operator.slurm.conf.admit import Refused
from slinky_operator.slurm.conf.directives import Directive, TextProblem, parse_lines, parse_words
from slinky_operator.slurm.conf.inputs import ConfInputs, NodeSetConf, PartitionConf, StaticNodeConf
from slinky_operator.slurm.conf.keys import restart_keys
from slinky_operator.slurm.conf.parsed import Line, Parsed, parse
from slinky_operator.slurm.conf.render import Rendered, render
from slinky_operator.slurm.conf.sources.gather import Gathered, TextSource, gather, names_of_sources

__all__ = [
    "ConfInputs",
    "Directive",
    "Gathered",
    "Line",
    "NodeSetConf",
    "Parsed",
    "PartitionConf",
    "Refused",
    "Rendered",
    "StaticNodeConf",
    "TextProblem",
    "TextSource",
    "gather",
    "names_of_sources",
    "parse",
    "parse_lines",
    "parse_words",
    "render",
    "restart_keys",
]
