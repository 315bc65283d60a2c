"""Scorers: functions that give a record a score, a verdict, a label, or several of them.

A scorer is code of the user. It runs on stored records, and its scores are stored with the run:
scoring, comparing and reporting only read them.
"""
