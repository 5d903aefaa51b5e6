"""The rules by kind of file: functions of lines (text, XML) or of bytes, and a generator of random numbers."""
