"""The commands, a module each or for two that belong together, or a room.

Each asks through a `shared.session.Session`, lets a rule answer, and prints by `screen.printing`.

===========  ================================================================
`shared`     what commands have in common: options, files, what they ask with
`status`     ``status``
`explain`    ``explain``
`drain`      ``drain`` and ``undrain``
`conf`       ``conf``
`logs`       ``logs``, and the output of jobs
`submit`     ``submit``
`convert`    ``convert``
`report`     ``report``
`preflight`  ``preflight``, with the trial of a changed configuration
`verify`     ``verify``
`token`      ``token``
===========  ================================================================
"""
