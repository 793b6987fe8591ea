"""What no single operator shows: transfers, random numbers, training, models."""
