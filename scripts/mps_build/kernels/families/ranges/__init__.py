"""`arange` and `linspace` into dense tensors."""
