"""Statistics over arrays: it knows nothing of records, measures or metrics."""
