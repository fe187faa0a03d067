"""The doctor's checks of TubeMQ's masters."""
