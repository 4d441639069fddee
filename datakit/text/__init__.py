"""The views and kernels over text that several stages share."""
