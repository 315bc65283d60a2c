"""Reports: functions of plain data."""
