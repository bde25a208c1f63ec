"""How a controller writes: children, finalizers and the status, each so that it may be done twice.

================  =======================================================================================
module            concern
================  =======================================================================================
`create_or_adopt` an object of a known name: the operator's, or `NameTaken`
`children`        when an object of the operator has to be written again
`finalizers`      one finalizer of an object, set or removed
`status_writer`   one merge patch of a status, only if something differs
================  =======================================================================================
"""
