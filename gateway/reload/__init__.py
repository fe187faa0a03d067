"""Rules are read again while the gateway serves: at SIGHUP, and when their files are others.

- `files`: what shows that files are others
- `reader`: the process that reads and checks them
- `reading`: starts it, and takes what it says
- `passing`: how rules pass from the one to the other
- `reloader`: one reload after the other, in slices

To read and check 2000 rules keeps an interpreter busy for a second, in a thread too: the data path
would stand for tens of milliseconds, again and again. So another process does that.
"""
