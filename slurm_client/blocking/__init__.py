"""
Every call of the client once more, waited for.

All but :mod:`slurm_client.blocking.base` is generated from the asynchronous calls (``python -m hack.client_package``);
:mod:`slurm_client.sync` has the class that programs use.
"""
