"""slurm.conf and its family: frozen inputs in, files and a hash out, or problems with field and reason.

Pure: no I/O, no time. What becomes of the files is the Cluster controller's business.

==============  =======================================================================================
module          concern
==============  =======================================================================================
`admit`         which NodeSets take part
`containers`    oci.conf: how nodes run containers
`derive`        the files of a preflight, which disposable daemons read
`future_nodes`  lines of nodes that a NodeSet may have some day
`home_folders`  the program that makes home folders (`make-home.sh`), and its line
`inputs`        what a configuration is made of, taken from a Cluster and its NodeSets
`keys`          the keys of slurm.conf: who sets them, which need a restart, what a change does to jobs
`nodes`         nodes outside Kubernetes, and whose names they may have
`render`        templates to files, and the hash over them
`sources`       the user's part: files and scripts from the spec and from the ConfigMaps it names
`spec_lines`    lines of the spec about partitions and nodes, read once
`states`        states of partitions that an administrator has set
`subjects`      whose line a daemon has refused
`syntax`        text to words and lines, as Slurm reads them: what users write, and what was rendered
`programs`      programs that a preflight looks for in the image of the daemon that runs them
==============  =======================================================================================
"""

from slinky_operator.slurm.conf.admit import Refused
from slinky_operator.slurm.conf.inputs import ConfInputs, NodeSetConf
from slinky_operator.slurm.conf.keys.daemons import restart_keys
from slinky_operator.slurm.conf.render import Rendered, render
from slinky_operator.slurm.conf.sources.gather import Gathered, TextSource, gather, names_of_sources
from slinky_operator.slurm.conf.spec_lines import PartitionConf, StaticNodeConf
from slinky_operator.slurm.conf.syntax.directives import Directive, TextProblem, Words, parse_lines, parse_words
from slinky_operator.slurm.conf.syntax.parsed import ConfFiles, Line, Parsed, parse

__all__ = [
    "ConfFiles",
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
    "Words",
    "gather",
    "names_of_sources",
    "parse",
    "parse_lines",
    "parse_words",
    "render",
    "restart_keys",
]
