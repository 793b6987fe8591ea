"""What the training workloads share: the run's events, the observer of a training, tasks that need no download.

Imports torch and the standard library; a workload imports accelerate, transformers or scikit-learn by itself.
"""
