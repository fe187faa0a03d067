"""The jobs of `gateway pipeline` on millions of records, beside others that sum up the same."""
