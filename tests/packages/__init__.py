"""What is installed from the packages, and from what images are made of, starts and serves."""
