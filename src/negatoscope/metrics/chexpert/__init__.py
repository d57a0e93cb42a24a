"""CheXpert's rule-based labeler: which of 14 observations a report speaks of, and how."""
