"""Foreign layouts: recognising what a file's records look like, and turning each into a row of one of our kinds."""
