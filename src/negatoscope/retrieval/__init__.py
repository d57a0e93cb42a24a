"""Reports that are found, not written: groups of abnormal findings by CVSE, and whole reports of training studies."""
