"""
From the answers of any data parser to the canonical models.

One decoder per kind of object serves all parsers: where parsers differ, they differ in the shape of single values, and
the readers of :mod:`slurm_client.decode.read` take every shape that any parser uses. Which fields exist where is
checked against the parsers' own specifications by the tests. Decoders know nothing about HTTP.
"""
