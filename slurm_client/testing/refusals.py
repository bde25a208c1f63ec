"""What slurmctld says when it will not do something."""

from __future__ import annotations

INVALID_PARTITION = 2000
NODES_BUSY = 2016
INVALID_JOB = 2017
INVALID_NODE = 2018
TOO_MUCH_OF_A_NODE = 2014
ACCESS_DENIED = 2002
USER_ID_MISSING = 2010
ALREADY_DONE = 2021
INVALID_NODE_STATE = 2028
ACTIVE_FEATURE_NOT_SUBSET = 2031
DEPENDENCY = 2038
INVALID_GRES = 2072
INVALID_ARRAY = 2081
INVALID_TOPOLOGY = 2178
NOT_A_BATCH_JOB = 2039
RESERVATION_INVALID = 2053
JOB_FINISHED = 2084
NODE_ALREADY_EXISTS = 2168
INVALID_TRANSITION = 2180
EXTERNAL_JOB_INVALID = 2189
FLAGS_INVALID = 9207


class Refusal(Exception):
    """slurmctld says no: error number and sentence."""

    def __init__(self, number: int, description: str, *, extra: tuple[int, str] | None = None) -> None:
        super().__init__(description)
        self.number = number
        self.description = description
        self.before = extra
