"""Facts about plans; nothing here rewrites for speed."""
