"""The families of kernels: a folder each, with contracts, binder, references and judge."""
