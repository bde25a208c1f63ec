"""Installing on this machine what the other programs need: Debian packages, Go, downloads that are tried again.

===========  ====================================================
module       concern
===========  ====================================================
`apt`        installs Debian packages without starting what they bring
`downloads`  which failures are worth another try, and when
`go`         where Go is
===========  ====================================================
"""
