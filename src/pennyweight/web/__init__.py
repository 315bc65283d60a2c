"""The page: view, start and compare runs in the browser.

Tested elsewhere:
    access.py: tests/web/test_guard.py
    api_docs.py: tests/web/test_openapi.py
    assets.py: tests/web/test_pages.py
    forms.py: tests/web/test_rest.py
    jobs.py: tests/web/test_live.py
    site.py: tests/web/test_pages.py
    views.py: tests/web/test_pages.py
    worker.py: tests/web/test_live.py
"""
