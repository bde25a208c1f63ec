"""Samples: how a family is declared, and what keeps its values bounded and its counters growing.

=================  ==================================================================
module             concern
=================  ==================================================================
`family`           a family: name, type, unit, labels, source, and its samples
`budget`           top-N lists, so that labels from outside cannot grow without end
`monotone`         counters that never go back, although Slurm's do every midnight
=================  ==================================================================
"""
