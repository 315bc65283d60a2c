"""The page: view, start and compare runs in the browser."""
