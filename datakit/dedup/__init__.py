"""Exact and near duplicates: who stays, who is dropped, and by how much they resemble each other."""
