"""Programs for those who develop the operator: local Kubernetes, images, code generation, the demo."""
