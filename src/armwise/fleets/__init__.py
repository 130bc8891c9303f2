"""Fleets: identification of many robots from many logs by many workers.

Estimators are sums over samples, so they merge: workers read logs chunk by chunk and
send back sums; what robots share, how they spread and which of them differ follows from
those.
"""

from armwise.fleets.chunks import RobotLog, find_logs
from armwise.fleets.estimate import (
    FleetEstimate,
    FleetWork,
    fleet_to_dict,
    read_preparation,
    write_fleet,
)
from armwise.fleets.flags import Defect, Difference, Flag
from armwise.fleets.hierarchy import Hierarchy
from armwise.fleets.identify import identify_fleet
from armwise.fleets.job import BadLog

__all__ = [
    "BadLog",
    "Defect",
    "Difference",
    "Flag",
    "FleetEstimate",
    "FleetWork",
    "Hierarchy",
    "RobotLog",
    "find_logs",
    "fleet_to_dict",
    "identify_fleet",
    "read_preparation",
    "write_fleet",
]
