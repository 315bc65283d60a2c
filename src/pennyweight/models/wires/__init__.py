"""Wire formats, one a file: a request to JSON, JSON to a reply, both ways pure."""
