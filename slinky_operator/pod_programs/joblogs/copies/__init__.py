"""Copies of files and folders between a job's nodes and volumes: before a job starts, and after it has ended.

===============  ==========================================================================================
module           concern
===============  ==========================================================================================
`events`         a file or a folder as a sequence of events, and why a copy stops
`places`         paths below a folder: found or made without following a link
`tree_reader`    a file or a folder becomes events
`tree_writer`    events become a file or a folder, whole or not at all
`wire`           events on a connection
`permits`        tokens for one copy, of one path, as one user
`pace`           how slow a copy may be, and when it ends in any case
`shares`         which copies are under way on a server, and who may begin another one
`serving`        the side beside slurmd: as the user of the job
`orders`         the orders for the pod that copies, and its answer
`porter`         the program in that pod
===============  ==========================================================================================

Like the rest of the server they use nothing but the standard library. What is copied when is left to the operator.
"""
