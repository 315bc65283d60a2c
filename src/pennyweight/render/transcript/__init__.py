"""The texts of records as a page shows them. All of them are hostile: nothing in them can act.

Tested elsewhere:
    folds.py: tests/render/transcript/test_markdown.py
    replies.py: tests/web/test_task_view.py
"""
