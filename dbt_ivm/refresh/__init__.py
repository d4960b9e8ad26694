"""From a compiled view and what changed to the steps of one refresh."""
