"""CheXpert's rule-based labeler: which of 14 observations a report mentions, and whether as present, absent or uncertain."""
