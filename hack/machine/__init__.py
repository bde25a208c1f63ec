"""Know the machine: what programs need installed on it, its ports, how programs start and say what goes on.

===============  =================================================================
module           concern
===============  =================================================================
`apt`            installs Debian packages without starting what they bring
`downloads`      which failures are worth another try, and when
`go`             where Go is
`neutral_start`  what programs and tests do not take over from who starts them
`ports`          ports of loopback for servers in tests
`progress`       lines that tell a person what is going on
===============  =================================================================
"""
