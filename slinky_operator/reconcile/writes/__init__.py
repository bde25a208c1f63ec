"""How a controller writes: children, finalizers and the status, each so that it may be done twice.

================  =======================================================================================
module            concern
================  =======================================================================================
`children`        when an object of the operator has to be written again; one of a known name, or `NameTaken`
`parts`           conditions, owner references and stored statuses, alike for all controllers
`finalizers`      one finalizer of an object, set or removed
`status_writer`   one merge patch of a status, only if something differs
================  =======================================================================================
"""
