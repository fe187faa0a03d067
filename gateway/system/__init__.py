"""What the machine and a service manager give the process, signals, and the interpreter."""
