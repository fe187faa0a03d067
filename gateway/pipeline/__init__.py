"""Turns usage records into bills, reports and recommended rules."""
