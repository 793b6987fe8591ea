"""What a launch is: buffers, steps, views, checks, element types, values."""
