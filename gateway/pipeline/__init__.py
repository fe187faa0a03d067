"""From usage records to bills, limits and alerts: jobs on Spark."""
