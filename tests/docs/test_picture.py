"""The picture on the first pages is of a report as it looks today."""

from __future__ import annotations

from .shown import imported


def test_the_picture_was_taken_of_reports_as_they_look() -> None:
    picture = imported("picture")
    told = "reports look different now: run `python docs/picture.py`, which needs Chromium"
    assert picture.taken_of(picture.PICTURE.read_bytes()) == picture.looks(), told
