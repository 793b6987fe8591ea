"""What a wheel holds (facts), what it should hold (rules), and the verdict."""
