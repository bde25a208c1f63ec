"""``kubectl slurm``: what a Slurm in Kubernetes is doing and why, on one screen, with the rights of an ordinary editor.

A program of its own, which starts at once: it imports neither pydantic nor the operator, but for some of its pure
rules. Objects of the API server are read as they are (`facts`): a plugin older or newer than the operator works.

==========  =========================================================================================================
`cli`       the command line: options that all commands share, errors, exit codes, completion
`commands`  a module a command or two: what is asked, which rule answers, what is printed
`access`    the API server through ``kubectl proxy``, slurmrestd through the API server, tokens for it
`rules`     what to say: pure functions from facts to blocks of text
`facts`     frozen objects of Kubernetes and of Slurm as rules see them
`screen`    blocks of text, and how they are printed: the one place through which everything goes to a terminal
`errors`    all that can go wrong, with what to do and the exit code
`version`   which release this is
==========  =========================================================================================================
"""
