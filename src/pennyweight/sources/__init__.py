"""Sources: where records come from. Files and streams in, checked frames of records out."""
