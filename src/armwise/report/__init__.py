"""Report: everything about an estimate, self-contained, for people and machines."""

from armwise.report.html import report_to_html
from armwise.report.report import Report
from armwise.report.save import report_to_json
from armwise.report.text import report_to_text
from armwise.report.write import make_report, write_report

__all__ = [
    "Report",
    "make_report",
    "report_to_html",
    "report_to_json",
    "report_to_text",
    "write_report",
]
