"""Which operators MPS runs itself, through a composite, or not at all: from a source tree or from a wheel."""
