"""Fleets: many robots, many logs, many workers, one answer.

Estimators are sums over samples, so they merge: workers read logs piece by piece and
send back sums; what robots share, how they spread and which of them differ follows from
those.
"""

from armwise.fleets.defects import Defect
from armwise.fleets.estimate import FleetEstimate, Work
from armwise.fleets.flags import Difference, Flag
from armwise.fleets.gather import BadLog
from armwise.fleets.hierarchy import Hierarchy
from armwise.fleets.identify import identify_fleet
from armwise.fleets.logs import Log, find_logs

__all__ = [
    "BadLog",
    "Defect",
    "Difference",
    "Flag",
    "FleetEstimate",
    "Hierarchy",
    "Log",
    "Work",
    "find_logs",
    "identify_fleet",
]
