"""The rules by kind of file: functions of lines (text, XML) or bytes, and random numbers."""
