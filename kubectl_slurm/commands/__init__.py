"""The commands, a module each or for two that belong together.

Each asks through a `session.Session`, lets a rule answer, and prints by `screen.printing`.

===================  ===================================================================================================
`options`            options that all commands share
`files`              files that the user names
`session`            what a command asks with: Kubernetes, a Cluster, its slurmrestd
`status`             ``status``
`explain`            ``explain``
`drain`              ``drain`` and ``undrain``
`conf`               ``conf``
`logs`               ``logs``
`job_output`         the output of a job, for ``logs``
`pods`               pods that commands look for by what Slurm calls them
`submit`             ``submit``
`convert`            ``convert``
`report`             ``report``
`preflight`          ``preflight``
`trial`              the trial of ``preflight``: Slurm's daemons read a changed configuration
`verify`             ``verify``
`verify_kubernetes`  checks of ``verify`` beside jobs
`token`              ``token``
===================  ===================================================================================================
"""
