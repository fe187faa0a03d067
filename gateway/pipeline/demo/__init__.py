"""A made-up month of records with known truth, for the tests and the demonstration of jobs."""
