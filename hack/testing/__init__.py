"""Test suites and their reports.

`suites`: what is run; `report`: what it said.
"""
