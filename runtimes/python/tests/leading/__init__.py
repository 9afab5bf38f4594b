"""What is loaded ahead of a program is what it imports before all else, and is as in a cold run."""
