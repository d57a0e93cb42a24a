"""A draft report for one study, by what ships with the package: recogniser, writer, doubt, evidence, calibration."""
