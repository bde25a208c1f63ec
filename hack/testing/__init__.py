"""Test suites and their reports.

`suites`: what is run; `report`: what it said; `profile`: where its time went.
"""
