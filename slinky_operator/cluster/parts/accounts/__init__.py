"""Accounts as objects: what `spec.accounting.tree` wants in slurmdbd, and how it gets there.

====================  ==============================================================================
module                concern
====================  ==============================================================================
`faults`              what is wrong with a tree as a whole
`wanted`              the tree as single objects
`limits`              limits as the tree writes them, and as the client library has them
`present`             what slurmdbd has
`changes`             what is to be done in slurmdbd, one write each
`difference`          the changes that lead from what is there to what is wanted, in an order that works
`pruning`             what is deleted, and what stays because it is used
`comparison`          what came of it, as it is remembered until the next time
`question`            compares the tree with slurmdbd, and changes what differs
`apply`               calls slurmdbd
`part`                what a Cluster shows of its accounts
====================  ==============================================================================
"""
