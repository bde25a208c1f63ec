"""The users whom daemons resolve: texts that they mount, and SSSD with its directory."""
