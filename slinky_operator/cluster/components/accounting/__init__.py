"""The daemons of accounting: slurmdbd, and the MariaDB that the operator runs for it."""
