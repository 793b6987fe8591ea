"""What two or more tasks need: process, console, errors, recipes, wheels, records, logs."""
