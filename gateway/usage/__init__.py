"""Usage records: who used what in each interval, in files, for bills and recommendations."""
