"""Reports: tables, figures and verdicts in one self-contained file."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from armwise.report.estimate import make_report, write_report
from armwise.report.formats import (
    PLOTLY,
    figure_to_html,
    page_to_html,
    plotly_source,
    report_to_html,
    report_to_json,
    report_to_text,
)
from armwise.report.report import (
    Figure,
    PlotlyFigure,
    Report,
    Role,
    Series,
    continued_time,
    envelope_rows,
)
from armwise.report.subject import Judgement, verdicts, worst_of

if TYPE_CHECKING:
    from armwise.report.calibration import write_calibration_report
    from armwise.report.fleet import fleet_verdict, write_fleet_report
    from armwise.report.gap import write_gap_report
    from armwise.report.load import write_load_files, write_load_report
    from armwise.report.servo import servo_verdicts, write_servo_files
    from armwise.report.simulation import (
        write_tracking_report,
        write_world,
        write_world_report,
    )

# Each brings the folder it reports on along, so it waits until it is used.
_IMPORTED_WHEN_USED = {
    "write_calibration_report": "armwise.report.calibration",
    "fleet_verdict": "armwise.report.fleet",
    "write_fleet_report": "armwise.report.fleet",
    "write_gap_report": "armwise.report.gap",
    "write_load_files": "armwise.report.load",
    "write_load_report": "armwise.report.load",
    "servo_verdicts": "armwise.report.servo",
    "write_servo_files": "armwise.report.servo",
    "write_tracking_report": "armwise.report.simulation",
    "write_world": "armwise.report.simulation",
    "write_world_report": "armwise.report.simulation",
}


def __getattr__(name: str) -> Any:
    if name in _IMPORTED_WHEN_USED:
        return getattr(import_module(_IMPORTED_WHEN_USED[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "PLOTLY",
    "Figure",
    "Judgement",
    "PlotlyFigure",
    "Report",
    "Role",
    "Series",
    "continued_time",
    "envelope_rows",
    "figure_to_html",
    "fleet_verdict",
    "make_report",
    "page_to_html",
    "plotly_source",
    "report_to_html",
    "report_to_json",
    "report_to_text",
    "servo_verdicts",
    "verdicts",
    "worst_of",
    "write_calibration_report",
    "write_fleet_report",
    "write_gap_report",
    "write_load_files",
    "write_load_report",
    "write_report",
    "write_servo_files",
    "write_tracking_report",
    "write_world",
    "write_world_report",
]
