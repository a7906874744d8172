"""Reports that people and programs look at: JSON, JUnit XML, Markdown, one HTML page.

A report is about one run of a command. `details` draws on the models and is imported where these are at hand; the forms
are imported when one is written.
"""

from __future__ import annotations

from reducelower.outcome import Outcome
from reducelower.report.writing import FORMATS, Report, render, write_report

__all__ = ["FORMATS", "Outcome", "Report", "render", "write_report"]
