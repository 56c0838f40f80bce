"""What fetch_suitesparse.py fetches, and how."""
