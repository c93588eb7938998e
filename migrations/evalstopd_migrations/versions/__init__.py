"""The revisions, one a file; a released one never changes."""
