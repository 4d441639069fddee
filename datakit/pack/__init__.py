"""From rows to packed token rows: chat templates, labels, bin packing, formats."""
