"""
From wishes to the bodies of requests, in the shape of the newest data parser.

The parts that another parser lacks are found by comparing with its generated types, and refused by name before anything
is sent; see :func:`slurm_client.encode.values.fitted`. Where parsers differ in more than that, it says so at the place.
"""
