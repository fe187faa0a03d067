"""The plane on real socket pairs: tests call its turns and deadlines, and the clock is theirs."""
