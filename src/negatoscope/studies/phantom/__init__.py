"""Phantom studies: chest radiographs drawn by formula, with known masks and reports from a grammar."""

from negatoscope.studies.phantom.settings import FINDINGS, FREQUENCIES, PhantomSettings
from negatoscope.studies.phantom.studying import DrawnStudy, draw_study, phantom_studies

__all__ = ["FINDINGS", "FREQUENCIES", "DrawnStudy", "PhantomSettings", "draw_study", "phantom_studies"]
