"""Reports: tables, figures and verdicts in one self-contained file."""

from armwise.report.calibration import write_calibration_report
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
from armwise.report.load import write_load_files, write_load_report
from armwise.report.report import (
    Figure,
    PlotlyFigure,
    Report,
    Role,
    Series,
    continued_time,
    envelope_rows,
)
from armwise.report.simulation import (
    write_tracking_report,
    write_world,
    write_world_report,
)

__all__ = [
    "PLOTLY",
    "Figure",
    "PlotlyFigure",
    "Report",
    "Role",
    "Series",
    "continued_time",
    "envelope_rows",
    "figure_to_html",
    "make_report",
    "page_to_html",
    "plotly_source",
    "report_to_html",
    "report_to_json",
    "report_to_text",
    "write_calibration_report",
    "write_load_files",
    "write_load_report",
    "write_report",
    "write_tracking_report",
    "write_world",
    "write_world_report",
]
