"""The page: look at runs, start them and compare them, on this machine."""
