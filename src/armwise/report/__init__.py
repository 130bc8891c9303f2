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

if TYPE_CHECKING:
    from armwise.report.calibration import write_calibration_report
    from armwise.report.load import write_load_files, write_load_report
    from armwise.report.world import write_world

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
    "write_world",
]

# The folders these are about take longer to import than an estimate's report to write.
_ON_DEMAND = {
    "write_calibration_report": "calibration",
    "write_load_files": "load",
    "write_load_report": "load",
    "write_world": "world",
}


def __getattr__(name: str) -> Any:
    if name not in _ON_DEMAND:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_ON_DEMAND[name]}"), name)
