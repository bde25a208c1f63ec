"""
What can be asked of slurmrestd, by kind of object.

Each class here holds the calls about one kind of object; :class:`~slurm_client.client.SlurmClient` is all of them
together. How a call is carried out is left to :mod:`slurm_client.connection.session`.
"""
