"""Layouts of other people's records: recognise the layout of a file, convert each record to a row of our kinds."""
