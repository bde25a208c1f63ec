"""Test suites and their reports.

`suites`: what is run; `report`: what it said; `profile`: where its time went;
`preparing`: builds beside the checks that do not need them yet.
"""
