"""The subscribers to lists, and the content pushed to each of them."""
