"""The demo of the README, `make demo`: a shop is built, changed, refreshed and checked.  Start reading in story.py."""
