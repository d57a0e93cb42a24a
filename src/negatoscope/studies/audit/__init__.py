"""What quietly ruins results, looked for in a store or at a source before anything learns from it."""

from __future__ import annotations

from negatoscope.studies.audit.gathered import Example, Finding
from negatoscope.studies.audit.page import write_audit_page
from negatoscope.studies.audit.run import Audit, audit

__all__ = ["Audit", "Example", "Finding", "audit", "write_audit_page"]
