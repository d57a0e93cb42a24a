"""Where reports are read: pages, and later the service beside a PACS."""
