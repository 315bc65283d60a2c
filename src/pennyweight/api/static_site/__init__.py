"""A static site of runs: pages that open from a folder or any web server, without a script.

Tested elsewhere:
    lists.py: tests/api/static_site/test_site.py
    places.py: tests/api/static_site/test_site.py
    record_pages.py: tests/api/static_site/test_site.py
    run_pages.py: tests/api/static_site/test_site.py
    size.py: tests/api/static_site/test_site.py
"""
