"""What the machine allows the process, signals, and the interpreter's settings."""
