"""What each kind of source can tell about its changes; one kind, one file."""
