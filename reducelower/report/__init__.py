"""Reports for people and programs: JSON, JUnit XML, Markdown, one HTML page.

A report is about one run of a command. `details` needs the models, so it runs while they are loaded. Each format is
imported when it is written.
"""

from __future__ import annotations

from reducelower.outcome import Outcome
from reducelower.report.writing import FORMATS, Report, render, write_report

__all__ = ["FORMATS", "Outcome", "Report", "render", "write_report"]
