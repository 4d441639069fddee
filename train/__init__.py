"""A lean streaming trainer for what datakit packs."""
