"""What the doctor checks of TubeMQ."""
