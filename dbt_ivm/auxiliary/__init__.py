"""Parts of a view that are kept as views of their own."""
