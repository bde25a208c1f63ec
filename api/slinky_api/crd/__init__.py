"""CustomResourceDefinitions from the models.

``structural`` turns a model into a structural schema, ``descriptions`` adds what the source says of its fields,
``definition`` puts a CRD around it, ``__main__`` writes the files or says how they differ: ``python -m slinky_api.crd
write|check``. Nothing here is needed at run time.
"""
