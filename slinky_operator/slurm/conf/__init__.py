"""slurm.conf and its family: frozen inputs in, files and a hash out, or problems with field and reason.

Pure: no I/O, no time. What becomes of the files is the Cluster controller's business.

=============  ===================================================================================
module         concern
=============  ===================================================================================
`directives`   reads user text as Slurm would: words `Key=Value`, and nothing that could be more
`inputs`       what a configuration is made of, taken from a Cluster and its NodeSets
`merge`        the operator's keys and the user's `extraConf`, each key once
`parsed`       a rendered file read again, for whoever must know what runs
`render`       templates to files, and the hash over them
=============  ===================================================================================
"""

from slinky_operator.slurm.conf.directives import Directive, TextProblem, parse_lines, parse_words
from slinky_operator.slurm.conf.inputs import ConfInputs, NodeSetConf, PartitionConf, StaticNodeConf
from slinky_operator.slurm.conf.parsed import Line, Parsed, parse
from slinky_operator.slurm.conf.render import Refused, Rendered, render

__all__ = [
    "ConfInputs",
    "Directive",
    "Line",
    "NodeSetConf",
    "Parsed",
    "PartitionConf",
    "Refused",
    "Rendered",
    "StaticNodeConf",
    "TextProblem",
    "parse",
    "parse_lines",
    "parse_words",
    "render",
]
