"""Samples: how a family is declared, and what keeps its values bounded and its counters growing.

=================  ==================================================================
module             concern
=================  ==================================================================
`family`           a family: name, type, unit, labels, source, and its samples
`budget`           top-N lists, so that labels from outside cannot grow without end
`words`            Slurm's own words of states; all others share one
`shared`           results that are kept for short texts only
`monotone`         counters that never go back, although Slurm's do every midnight
=================  ==================================================================
"""
