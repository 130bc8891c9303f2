"""Report: everything about an estimate, self-contained, for people and machines."""

from armwise.report.calibration import write_calibration_report
from armwise.report.html import report_to_html
from armwise.report.load import write_load_files, write_load_report
from armwise.report.report import Report, continued_time, telling_rows
from armwise.report.save import report_to_json, report_to_text
from armwise.report.write import make_report, write_report

__all__ = [
    "Report",
    "continued_time",
    "make_report",
    "report_to_html",
    "report_to_json",
    "report_to_text",
    "telling_rows",
    "write_calibration_report",
    "write_load_files",
    "write_load_report",
    "write_report",
]
